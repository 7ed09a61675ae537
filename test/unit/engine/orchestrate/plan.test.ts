import { expect } from "chai";
import fc from "#support/properties.ts";
import { lastSections, runSections, shareOf, wavesOf } from "#engine/orchestrate/plan.ts";
import { actionStage, applyStage } from "#support/runs.ts";
import { noAction } from "#support/actions.ts";

const names = fc.uniqueArray(fc.stringMatching(/^[a-z][0-9]$/), { maxLength: 20 });

describe("the sections of a run", () => {
  it("separate stages with another pace or other nodes", () => {
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

  it("contain each stage once, in order", () => {
    const stages = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 1, max: 2 })), { maxLength: 12 });
    fc.assert(
      fc.property(stages, (shapes) => {
        const all = shapes.map(([hasNodes, count], index) =>
          hasNodes ? applyStage(`s${index}`, ["n1", "n2"].slice(0, count), []) : actionStage(`s${index}`, noAction),
        );
        const planned = runSections(all).flatMap((section) =>
          section.kind === "barrier" ? [section.stage] : section.stages,
        );
        expect(planned).to.deep.equal(all);
      }),
    );
  });

  it("wavesOf puts each node into exactly one wave, or lists it as unclaimed", () =>
    fc.assert(
      fc.property(names, names, names, (nodes, first, second) => {
        const { waves, unclaimed } = wavesOf(nodes, [{ nodes: first, batch: 1 }, { nodes: second }]);
        expect([...waves.flat(), ...unclaimed].toSorted()).to.deep.equal([...nodes].toSorted());
      }),
    ));

  it("lastSections finds the last section of each node", () => {
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

  it("shareOf rounds shares down", () =>
    expect([shareOf("25%", 7), shareOf("100%", 7), shareOf(3, 7)]).to.deep.equal([1, 7, 3]));
});
