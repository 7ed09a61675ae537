import { expect } from "chai";
import { commandRun } from "#engine/modules/command-run.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { labSession } from "#support/lab-session.ts";
import { ownLab } from "#support/own-lab.ts";
import { draftOf, type TestSession } from "#support/sessions.ts";
import { stepOf } from "#support/steps.ts";

/** Changes that shut the bastion out of a machine with systemd, which must revert by itself. */
describe("a change on trial on a real node", function () {
  this.timeout(600_000);
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
  const told = async (command: string): Promise<string> => (await n1.exec(command)).stdout.trim();
  const left =
    "ls -d /var/lib/kcore/trial* /etc/systemd/system/kcore-trial* /etc/systemd/system/*/kcore-trial* 2>/dev/null || :";

  it("is confirmed, and nothing is left of the trial", async () => {
    const run = open("good");
    expect((await perform(run, change("MaxSessions 9\n", 300))).problem).to.equal(undefined);
    expect(run.outcomes()).to.deep.equal(["config changed", "sshd changed"]);
    expect([await told(`cat ${path}`), await told(left)]).to.deep.equal(["MaxSessions 9", ""]);
  });

  it("of sshd is taken back, and sshd with it", async () => {
    const result = await perform(open("bad"), change("AllowUsers nobody\n", 5));
    expect(result.problem?.code).to.equal("CONNECTIVITY_REVERTED");
    expect([await told(`cat ${path}; systemctl is-active ssh`), await told(left)]).to.deep.equal([
      "MaxSessions 9\nactive",
      "",
    ]);
  });

  it("of the firewall is taken back, and its rules with it", async () => {
    await n1.exec("apt-get -q update && apt-get -qy install --no-install-recommends nftables", { timeout: 120_000 });
    const firewall = (rule: string, confirm: number) => {
      const content = `flush ruleset\ntable inet filter {\n  chain input { type filter hook input priority 0; ${rule}; }\n}\n`;
      const risk = { risk: "connectivity", confirm } as const;
      return [
        draftOf("rules", stepOf(fileManaged, { path: "/etc/nftables.conf", content }), risk),
        draftOf("firewall", stepOf(serviceRunning, { name: "nftables", onChange: "reload" }), {
          ...risk,
          restartOn: ["test/rules"],
        }),
      ];
    };
    const good = await perform(open("firewall"), firewall("tcp dport 23 drop", 300));
    expect(good.problem).to.equal(undefined);
    const bad = await perform(open("firewalled"), firewall("tcp dport 22 drop", 5));
    expect(bad.problem?.code).to.equal("CONNECTIVITY_REVERTED");
    expect(await told("nft list ruleset"))
      .to.contain("tcp dport 23 drop")
      .and.not.contain("dport 22");
    expect([await told("cat /etc/nftables.conf; systemctl is-active nftables"), await told(left)]).to.satisfy(
      ([rules, rest]: [string, string]) => rules.includes("dport 23") && rules.endsWith("\nactive") && rest === "",
    );
  });

  it("of the network is taken back by the command that came with it", async () => {
    const set = (how: string): string => `cd /sys/class/net && for link in [!l]*; do ip link set "$link" ${how}; done`;
    const network = stepOf(commandRun, { cmd: set("down"), revert: set("up") });
    const run = open("network");
    const result = await perform(run, [draftOf("network", network, { risk: "connectivity", confirm: 5 })]);
    expect(result.problem?.code).to.equal("CONNECTIVITY_REVERTED");
    expect(run.outcomes()).to.deep.equal(["network failed"]);
    expect(await told(left)).to.equal("");
  });

  it("is taken back at boot when the power goes before it was confirmed, and the run says so", async () => {
    const run = open("power");
    const working = perform(run, change("AllowUsers nobody\n", 600));
    await run.seen((event) => event.type === "node.disconnected" && event.reason.includes("has to confirm"));
    await n1.powerCut();
    await n1.start();
    const result = await working;
    expect(result.problem?.code).to.equal("CONNECTIVITY_REVERTED");
    expect([await told(`cat ${path}; systemctl is-active ssh`), await told(left)]).to.deep.equal([
      "MaxSessions 9\nactive",
      "",
    ]);
  });
});
