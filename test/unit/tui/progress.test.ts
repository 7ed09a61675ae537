import { expect } from "chai";
import fc from "#support/properties.ts";
import type { RunEvent, RunEventBody, StageOutline } from "#engine/events/event.ts";
import { RunFold } from "#engine/events/reduce.ts";
import { nodeRows, type NodeRow } from "#tui/node-row.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";

/** The rows of a run after each of its events. */
function* rowsOf(bodies: Iterable<RunEventBody>): Generator<ReadonlyMap<string, NodeRow>> {
  const fold = new RunFold();
  let seq = 0;
  for (const body of bodies) {
    seq += 1;
    fold.add({ ...body, seq, at: seq * 100 } as RunEvent);
    yield new Map(nodeRows(fold.model).map((row) => [row.name, row]));
  }
}

function started(stages: readonly StageOutline[], resumed = false): RunEventBody {
  const nodes = [...new Set(stages.flatMap((stage) => stage.nodes))];
  const what = { runId: "r1", title: "t", command: "kcore", dryRun: false, who: "me" };
  return { type: "run.started", ...what, nodes, stages, ...(resumed && { resumed }) };
}

/** A planned stage, with the true number of its steps on a node. */
interface Planned {
  readonly planned: number;
  readonly open: boolean;
  readonly real: number;
}

/** The course of a step: started and ended, ended without a start, started twice, or failed. */
type Fate = "changed" | "quick" | "again" | "failed";

function eventsOf(node: string, stages: readonly Planned[], fates: readonly Fate[]): readonly RunEventBody[] {
  const events: RunEventBody[] = [{ type: "node.connecting", node, attempt: 1 }];
  let turn = 0;
  for (const [index, { real }] of stages.entries()) {
    const [stage, exchange] = [`s${index}`, index + 1];
    if (real > 0) events.push({ type: "node.segment", node, exchange, steps: real, bytes: 100 });
    for (let number = 0; number < real; number += 1) {
      const fate = fates[turn++ % fates.length] ?? "changed";
      const step = { node, stage, step: `${stage}/${number}`, title: `step ${number}`, module: "command.run" };
      if (fate !== "quick") events.push({ type: "step.started", ...step });
      if (fate === "again")
        events.push({ type: "step.finished", ...step, outcome: "interrupted" }, { type: "step.started", ...step });
      events.push({ type: "step.finished", ...step, outcome: fate === "failed" ? "failed" : "changed" });
      if (fate === "failed") return [...events, { type: "node.finished", node, outcome: "failed" }];
    }
  }
  return [...events, { type: "node.finished", node, outcome: "done" }];
}

const stage = fc
  .record({ planned: fc.nat(6), open: fc.boolean(), more: fc.nat(5) })
  .map(({ planned, open, more }): Planned => ({ planned, open, real: open ? planned + more : planned }));
const fate = fc.constantFrom<Fate>("changed", "changed", "quick", "again", "failed");
const runs = fc.record({
  stages: fc.array(stage, { minLength: 1, maxLength: 6 }),
  fates: fc.array(fate, { minLength: 1, maxLength: 20 }),
});

describe("the progress of a node", () => {
  it("is open and below 1 after a failure in a record without planned steps", () => {
    // An earlier version, without planned steps, recorded this run.
    const rows = [...rowsOf(recordedRun("failed"))].at(-1);
    const row = rows?.get("n1");
    expect(row).to.include({ state: "failed", ended: 3, planned: 3, isOpen: true });
    expect(row?.progress).to.be.below(1);
  });

  it("counts all stages from the start, and never decreases", () => {
    fc.assert(
      fc.property(runs, ({ stages, fates }) => {
        const outlines = stages.map(({ planned, open }, index): StageOutline => ({
          id: `s${index}`,
          title: `s${index}`,
          nodes: ["n1"],
          planned,
          ...(open && { open }),
        }));
        const sure = stages.reduce((sum, { planned }) => sum + planned, 0);
        const all = stages.reduce((sum, { real }) => sum + real, 0);
        let before: NodeRow | undefined;
        for (const rows of rowsOf([started(outlines), ...eventsOf("n1", stages, fates)])) {
          const row = rows.get("n1") as NodeRow;
          expect(row.progress).to.be.within(before?.progress ?? 0, 1);
          expect(row.ended).to.be.within(before?.ended ?? 0, row.planned);
          expect(row.planned).to.be.within(sure, all);
          // A final count stays.
          if (before && !before.isOpen) expect(row.planned).to.equal(before.planned);
          if (!stages.some(({ open }) => open)) expect(row.planned).to.equal(all);
          before = row;
        }
        if (before?.state === "done")
          expect([before.progress, before.ended, before.planned]).to.deep.equal([1, all, all]);
      }),
    );
  });

  for (const name of recordedRunNames)
    it(`never decreases in the recorded run “${name}” without planned steps`, () => {
      const most = new Map<string, number>();
      const fold = new RunFold();
      for (const event of recordedRun(name)) {
        // A resumed run begins again.
        if (event.type === "run.started") most.clear();
        fold.add(event);
        for (const { name: node, progress, isBastion } of nodeRows(fold.model)) {
          if (isBastion) continue;
          expect(progress, `${node} at ${event.seq}`).to.be.within(most.get(node) ?? 0, 1);
          most.set(node, progress);
        }
      }
    });

  it("counts each node's own number of steps, and actions for the node", () => {
    const nodes = ["n1", "n2"];
    const stages: readonly StageOutline[] = [
      { id: "a", title: "a", nodes, planned: [3, 5] },
      { id: "b", title: "b", nodes: ["n2"], action: "pki.issueNode", planned: 1 },
      { id: "c", title: "c", nodes, planned: 0, open: true },
    ];
    const [rows] = [...rowsOf([started(stages)])];
    expect(nodes.map((node) => [rows?.get(node)?.planned, rows?.get(node)?.isOpen])).to.deep.equal([
      [3, true],
      [6, true],
    ]);
  });
});
