import { expect } from "chai";
import { rebootDone } from "#engine/modules/reboot-done.ts";
import { createTransport } from "#engine/transport/connect.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import { stepOf } from "#support/steps.ts";

/** What a run knows of the boots that it made. */
describe("boots of a real node", function () {
  this.timeout(180_000);
  let lab: Lab;
  let n1: LabNode;
  before(async () => {
    lab = await openLab({ name: "boots" });
    [n1] = (await lab.up([{ name: "n1", kind: "debian", disks: [] }])) as [LabNode];
  });
  after(async () => lab.down());

  it("are one for a run, however many steps ask for it", async () => {
    const { name, address, port, identityFile, hostKey } = n1;
    const run = sessionOn("/var/lib/kcore", {
      connect: createTransport({ home: "/nonexistent" }).connect,
      endpoint: { name, transport: "ssh", address, port, user: "root", identityFile, hostKeys: [hostKey], jump: [] },
      runId: "boots",
    });
    const step = stepOf(rebootDone, { always: true });
    const result = await run.session.perform([
      { stage: "s", drafts: [draftOf("first", step), draftOf("again", step)] },
    ]);
    await run.session.finish(result.outcome);
    expect(run.outcomes()).to.deep.equal(["first changed", "again ok"]);
    expect(run.events.filter(({ type }) => type === "node.rebooted")).to.have.length(1);
  });
});
