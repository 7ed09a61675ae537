import { expect } from "chai";
import { ackConflict, listConflicts, takeLoser } from "#controller/cluster/conflicts.ts";
import { watchNodeNames } from "#controller/cluster/node-names.ts";
import type { Nodes } from "#controller/cluster/nodes.ts";
import type { Records } from "#controller/cluster/records.ts";
import { keys } from "#controller/cluster/registers.ts";
import { watchRejects } from "#controller/cluster/rejects.ts";
import { Controllers } from "#support/cut-controllers.ts";

const by = "operator ann";

/** Two controllers after a partition in which one rejected the node again and the other approved it. */
async function rejectedAgain(): Promise<Controllers> {
  const all = await Controllers.start(2);
  const [here, there] = all.nodes as [Nodes, Nodes];
  await here.setApproval("n", { state: "rejected", by, reason: "first" });
  await all.settle();
  all.cut();
  await there.setApproval("n", { state: "approved", by });
  await here.setApproval("n", { state: "rejected", by, reason: "again" });
  await all.heal();
  expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
  return all;
}

describe("rejects of nodes", () => {
  it("stand against an approve that has read only another reject", async () => {
    const all = await Controllers.start(2);
    const [here, there] = all.nodes as [Nodes, Nodes];
    all.cut();
    await here.setApproval("n", { state: "rejected", by });
    await there.setApproval("n", { state: "rejected", by });
    await there.setApproval("n", { state: "approved", by });
    expect(all.approvals()).to.deep.equal(["rejected", "approved"]);
    await all.heal();
    expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
    expect(Math.min(...all.conflicts())).to.be.greaterThan(0);
    // An approval by a writer that has seen all rejections counts on every controller.
    await there.setApproval("n", { state: "approved", by });
    await all.settle();
    expect(all.approvals()).to.deep.equal(["approved", "approved"]);
  });

  it("stand if repeated during a concurrent approve, with the conflict listed", async () => {
    const all = await rejectedAgain();
    expect(all.nodes.map((nodes) => nodes.get("n").approvalReason)).to.deep.equal(["again", "again"]);
    expect(Math.min(...all.conflicts())).to.be.greaterThan(0);
  });

  it("are the conflict's winner against an approve of a later epoch; ack keeps them, take-loser approves the node", async () => {
    for (const [settle, due] of [
      [ackConflict, "rejected"],
      [(records: Records, id: string) => takeLoser({ records, rejects: watchRejects(records) }, id, by), "approved"],
    ] as const) {
      const all = await rejectedAgain();
      for (const [place, { records, rejects, nodes }] of all.parts.entries()) {
        const { conflicts } = listConflicts({ records, rejects }, watchNodeNames(records));
        const shown = [...conflicts, ...nodes.get("n").openConflicts].map(({ winner, loser }) =>
          [winner, loser].map(({ value }) => (value as { state: string }).state),
        );
        expect(shown, `controller ${place}`).to.deep.equal([
          ["rejected", "approved"],
          ["rejected", "approved"],
        ]);
      }
      const [part] = all.parts;
      const [conflict] = part?.records.replica.conflicts() ?? [];
      if (part && conflict) await settle(part.records, conflict.id);
      await all.settle();
      expect([all.approvals(), all.conflicts()]).to.deep.equal([
        [due, due],
        [0, 0],
      ]);
    }
  });

  it("end when the conflict is resolved to the approve", async () => {
    const all = await Controllers.start(2, true);
    const [here, there] = all.nodes as [Nodes, Nodes];
    all.cut();
    await here.setApproval("n", { state: "approved", by });
    await there.setApproval("n", { state: "rejected", by });
    await all.heal();
    expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
    const [part] = all.parts;
    const [conflict] = part?.records.replica.conflicts() ?? [];
    if (part && conflict) await takeLoser(part, conflict.id, by);
    await all.settle();
    expect(all.approvals()).to.deep.equal(["approved", "approved"]);
  });

  it("count, as do removals and revocations, if this version cannot read their values", async () => {
    const all = await Controllers.start(2);
    const [here] = all.replicas;
    const of = keys.node("n");
    const revoked = keys.revoked("0".repeat(64));
    await here?.replica.write([
      { key: of.reject("newer"), value: { by: { name: "ann" } } },
      { key: revoked, value: "since the day before" },
    ]);
    await all.settle();
    expect(all.approvals()).to.deep.equal(["rejected", "rejected"]);
    expect(all.nodes.map((nodes) => [...nodes.list()].map(({ approval }) => approval))).to.deep.equal([
      ["rejected"],
      ["rejected"],
    ]);
    expect(all.parts.map(({ rejects }) => rejects.of("n").length)).to.deep.equal([1, 1]);
    expect(all.parts.map(({ certificates }) => certificates.isRevoked("0".repeat(64)))).to.deep.equal([true, true]);
    // A controller that starts with the conflict on its disk finds it, too.
    expect(watchRejects(all.parts[1]?.records as Records).of("n").length).to.equal(1);
    await all.nodes[1]?.setApproval("n", { state: "approved", by });
    await all.settle();
    expect(all.approvals()).to.deep.equal(["approved", "approved"]);
    await here?.replica.write([{ key: of.removed, value: "a newer word" }]);
    await all.settle();
    expect(all.nodes.map((nodes) => [...nodes.list()])).to.deep.equal([[], []]);
  });
});
