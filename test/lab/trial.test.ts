import { expect } from "chai";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { labSession } from "#support/lab-session.ts";
import { ownLab } from "#support/own-lab.ts";
import { draftOf, type TestSession } from "#support/sessions.ts";
import { stepOf } from "#support/steps.ts";

/** Changes that shut the bastion out of a machine with systemd, which must revert by itself. */
describe("a change on trial on a real node", () => {
  let lab: Lab;
  let n1: LabNode;
  before(async () => {
    lab = await ownLab();
    [n1] = (await lab.up([{ name: "n1", kind: "debian", disks: [] }])) as [LabNode];
  });
  after(() => lab?.down());

  const path = "/etc/ssh/sshd_config.d/10-trial.conf";
  const change = (content: string, confirm: number) => {
    const risk = { risk: "connectivity", confirm } as const;
    return [
      draftOf("config", stepOf(fileManaged, { path, content }), risk),
      draftOf("sshd", stepOf(serviceRunning, { name: "ssh", onChange: "reload" }), {
        ...risk,
        restartOn: ["test/config"],
      }),
    ];
  };
  const open = (runId: string): TestSession => labSession(n1, "root", { runId });
  const perform = async (run: TestSession, drafts: ReturnType<typeof change>) => {
    const result = await run.session.perform([{ stage: "s", drafts }]);
    await run.session.finish(result.outcome);
    return result;
  };
  const outputOnNode = async (command: string): Promise<string> => (await n1.exec(command)).stdout.trim();
  const left =
    "ls -d /var/lib/kcore/trial* /etc/systemd/system/kcore-trial* /etc/systemd/system/*/kcore-trial* 2>/dev/null || :";

  it("is confirmed, and leaves nothing of the trial", async () => {
    const run = open("good");
    expect((await perform(run, change("MaxSessions 9\n", 300))).problem).to.equal(undefined);
    expect(run.outcomes()).to.deep.equal(["config changed", "sshd changed"]);
    expect([await outputOnNode(`cat ${path}`), await outputOnNode(left)]).to.deep.equal(["MaxSessions 9", ""]);
  });

  it("of sshd is reverted, with the running sshd", async () => {
    const result = await perform(open("bad"), change("AllowUsers nobody\n", 5));
    expect(result.problem?.code).to.equal("CONNECTIVITY_REVERTED");
    expect([await outputOnNode(`cat ${path}; systemctl is-active ssh`), await outputOnNode(left)]).to.deep.equal([
      "MaxSessions 9\nactive",
      "",
    ]);
  });

  it("is reverted at boot when the power fails before the confirmation, and the run reports that", async () => {
    const run = open("power");
    const working = perform(run, change("AllowUsers nobody\n", 600));
    await run.seen((event) => event.type === "node.disconnected" && event.reason.includes("has to confirm"));
    await n1.powerCut();
    await n1.start();
    const result = await working;
    expect(result.problem?.code).to.equal("CONNECTIVITY_REVERTED");
    expect([await outputOnNode(`cat ${path}; systemctl is-active ssh`), await outputOnNode(left)]).to.deep.equal([
      "MaxSessions 9\nactive",
      "",
    ]);
  });
});
