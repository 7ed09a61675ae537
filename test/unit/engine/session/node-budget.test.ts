import { expect } from "chai";
import { NodeBudget } from "#engine/session/node-budget.ts";
import { problemsIn } from "#support/problems.ts";

const MiB = 1 << 20;

describe("what one node may say", () => {
  it("is more with each of its steps, and no more than they can tell", () => {
    let steps = 0;
    const budget = new NodeBudget("n1", () => steps);
    budget.spend(16 * MiB);
    steps = 1;
    budget.spend(MiB / 8);
    expect(problemsIn(() => budget.spend(1)).join()).to.contain("NODE_LIMIT_EXCEEDED");
  });

  it("takes a bounded place as long as it is kept", () => {
    const budget = new NodeBudget("n1", () => 0);
    for (let time = 0; time < 3; time++) {
      budget.keep(8 * MiB);
      budget.release(8 * MiB);
    }
    budget.keep(8 * MiB);
    expect(problemsIn(() => budget.keep(1)).join()).to.contain("NODE_LIMIT_EXCEEDED");
  });
});
