import { expect } from "chai";
import { rebootDone } from "#engine/modules/reboot-done.ts";
import { createTransport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { ownLab } from "#support/own-lab.ts";
import { nodeEntry } from "#support/runs.ts";
import { draftOf, sessionOn, type TestSession } from "#support/sessions.ts";
import { stepOf } from "#support/steps.ts";

/** Reboots that a run makes, on a node behind a jump host. */
describe("reboots of a real node", () => {
  let lab: Lab;
  let n1: LabNode;
  let n2: LabNode;
  before(async () => {
    lab = await ownLab();
    [n1, n2] = (await lab.up([
      { name: "n1", kind: "debian", disks: [] },
      { name: "n2", kind: "debian", disks: [] },
    ])) as [LabNode, LabNode];
  });
  after(() => lab?.down());

  const endpointOf = ({ name, address, port, identityFile, hostKey }: LabNode, jump: Endpoint[] = []): Endpoint => {
    return { name, transport: "ssh", address, port, user: "root", identityFile, hostKeys: [hostKey], jump };
  };
  const open = (runId: string, node = nodeEntry("n1")): TestSession =>
    sessionOn("/var/lib/kcore", {
      connect: createTransport({ home: "/nonexistent" }).connect,
      endpoint: endpointOf(n1, [endpointOf(n2)]),
      runId,
      node,
    });

  it("happen once a run, however many steps ask for one", async () => {
    const run = open("boots");
    const step = stepOf(rebootDone, { always: true });
    const result = await run.session.perform([
      { stage: "s", drafts: [draftOf("first", step), draftOf("again", step)] },
    ]);
    await run.session.finish(result.outcome);
    expect(run.outcomes()).to.deep.equal(["first changed", "again ok"]);
    expect(run.events.filter(({ type }) => type === "node.rebooted")).to.have.length(1);
  });

  it("fail with the last observation when they do not end in time", async () => {
    // The node comes back, but its sshd does not.
    await n1.exec("systemctl mask ssh");
    const run = open("gone", { ...nodeEntry("n1"), consoleLog: n1.consoleLog });
    const step = stepOf(rebootDone, { always: true, timeout: 30 });
    const { problem, outcome } = await run.session.perform([{ stage: "s", drafts: [draftOf("boot", step)] }]);
    await run.session.finish(outcome);
    expect(problem).to.include({ code: "REBOOT_TIMEOUT", message: "n1 did not come back within 30 s" });
    expect(problem?.detail).to.match(
      /^last seen: .*n2 does not connect to .*\nlast on its console:\n(.*\n)*.*n1 login:/,
    );
  });
});
