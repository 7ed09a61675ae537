import { expect } from "chai";
import fc from "#support/properties.ts";
import { batchesOf, lastSections, runSections, shareOf, wavesOf } from "#engine/orchestrate/plan.ts";
import { actionStage, applyStage } from "#support/runs.ts";
import { noAction } from "#support/actions.ts";

const names = fc.uniqueArray(fc.stringMatching(/^[a-z][0-9]$/), { maxLength: 20 });

describe("the order of a run", () => {
  it("keeps an action for each node inside the block, so that no node waits for another", () => {
    const sections = runSections([
      applyStage("a", ["n1"], []),
      actionStage("b", noAction, { nodes: ["n1"] }),
      applyStage("c", ["n1"], []),
    ]);
    expect(sections).to.have.length(1);
  });

  it("keeps stages with another pace or other nodes apart", () => {
    const sections = runSections([
      applyStage("a", ["n1", "n2"], []),
      applyStage("b", ["n1", "n2"], [], { pace: { batch: 1 } }),
      applyStage("c", ["n2"], []),
      applyStage("d", ["n2"], [], { pace: { maxFailures: 1 } }),
      applyStage("e", ["n2"], [], { pace: { maxUnavailable: 1 } }),
      applyStage("f", ["n2"], [], { pace: { concurrency: 1 } }),
    ]);
    expect(sections).to.have.length(6);
  });

  it("never loses, repeats or reorders a stage", () => {
    const stages = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 2 })), { maxLength: 12 });
    fc.assert(
      fc.property(stages, (shapes) => {
        const all = shapes.map(([hasNodes, count], index) =>
          hasNodes ? applyStage(`s${index}`, ["n1", "n2"].slice(0, count), []) : actionStage(`s${index}`, noAction),
        );
        const back = runSections(all).flatMap((section) =>
          section.kind === "barrier" ? [section.stage] : section.stages,
        );
        expect(back).to.deep.equal(all);
      }),
    );
  });

  it("cuts batches of the given size in order", () => {
    expect([batchesOf(["a", "b", "c"], 2), batchesOf([], 2)]).to.deep.equal([[["a", "b"], ["c"]], []]);
    fc.assert(
      fc.property(names, fc.integer({ min: 1, max: 9 }), (nodes, size) => {
        const batches = batchesOf(nodes, size);
        expect(batches.flat()).to.deep.equal(nodes);
        expect(batches.slice(0, -1).every((batch) => batch.length === size)).to.equal(true);
      }),
    );
  });

  it("gives each node to exactly one wave, or says that none takes it", () =>
    fc.assert(
      fc.property(names, names, names, (nodes, first, second) => {
        const { waves, unclaimed } = wavesOf(nodes, [{ nodes: first, batch: 1 }, { nodes: second }]);
        expect([...waves.flat(), ...unclaimed].toSorted()).to.deep.equal([...nodes].toSorted());
      }),
    ));

  it("takes controllers one at a time, then the rest together", () => {
    const { waves } = wavesOf(["w1", "c1", "w2", "c2"], [{ nodes: ["c1", "c2"], batch: 1 }, { nodes: ["w1", "w2"] }]);
    expect(waves).to.deep.equal([["c1"], ["c2"], ["w1", "w2"]]);
  });

  it("knows the last section of each node", () => {
    const sections = runSections([
      applyStage("a", ["n1", "n2"], []),
      actionStage("x", noAction),
      applyStage("b", ["n2"], []),
    ]);
    expect([...lastSections(sections)]).to.deep.equal([
      ["n1", 0],
      ["n2", 2],
    ]);
  });

  it("rounds shares down", () =>
    expect([shareOf("25%", 7), shareOf("100%", 7), shareOf(3, 7)]).to.deep.equal([1, 7, 3]));
});
