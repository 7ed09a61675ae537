import { expect } from "chai";
import { reduceEvents } from "#engine/events/reduce.ts";
import { tellForetold, upcomingStages } from "#tui/confirmation-text.ts";
import { wideRun } from "#support/wide-run.ts";

describe("What comes after a confirmation", () => {
  it("is the stages whose turn has not come, each with its nodes, the rest counted", () => {
    const model = reduceEvents(wideRun({ nodes: 5, steps: 4 }).slice(0, 1));
    expect(upcomingStages(model)).to.equal(
      "then: preflight on 5 nodes; disks on 5 nodes; nix on 5 nodes; kcore on 5 nodes",
    );
    const few = model.stages.slice(0, 2).map((stage) => ({ ...stage, nodes: ["a", "b"] }));
    expect(upcomingStages({ stages: few })).to.equal("then: preflight on a, b; disks on a, b");
    const action = { id: "x", title: "register", nodes: [], state: "pending" as const, actions: [] };
    expect(upcomingStages({ stages: [...model.stages, action, action] })).to.match(/kcore on 5 nodes; 2 more stages$/);
    expect(upcomingStages({ stages: [action] })).to.equal("then: register");
    expect(upcomingStages(reduceEvents(wideRun({ nodes: 2, steps: 2 })))).to.equal("");
  });

  it("tells what a dry run of the same said", () => {
    const said = { at: 0, wouldChange: 7, unknown: 2, failed: 0, isSame: true };
    expect(tellForetold(said, "12m")).to.equal("the dry run 12m ago: 7 would change, 2 unknown, 0 failed");
    expect(tellForetold({ ...said, unknown: 0, isSame: false }, "2d")).to.equal(
      "the dry run 2d ago: 7 would change, 0 failed (the project has changed since)",
    );
  });
});
