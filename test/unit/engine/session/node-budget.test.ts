import { expect } from "chai";
import { NodeBudget } from "#engine/session/node-budget.ts";
import { problemsIn } from "#support/problems.ts";

const MiB = 1 << 20;

describe("NodeBudget", () => {
  it("grows with each step, and is exceeded beyond", () => {
    let steps = 0;
    const budget = new NodeBudget("n1", () => steps);
    budget.spend(16 * MiB);
    steps = 1;
    budget.spend(MiB / 8);
    expect(problemsIn(() => budget.spend(1)).join()).to.contain("NODE_LIMIT_EXCEEDED");
  });

  it("limits the bytes that are held at a time", () => {
    const budget = new NodeBudget("n1", () => 0);
    for (let time = 0; time < 3; time++) {
      budget.keep(8 * MiB);
      budget.release(8 * MiB);
    }
    budget.keep(8 * MiB);
    expect(problemsIn(() => budget.keep(1)).join()).to.contain("NODE_LIMIT_EXCEEDED");
  });
});
