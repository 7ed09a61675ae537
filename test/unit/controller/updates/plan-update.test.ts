import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { isTooLarge } from "#controller/updates/plan-update.ts";
import { maxValueBytes } from "#crdt/register.ts";
import { aNode, SteppedRollout } from "#support/stepped-rollout.ts";

/** The longest progress that a rollout of so many nodes writes. */
function largest(count: number): { readonly waves: readonly (readonly string[])[]; readonly bytes: number } {
  const nodes = Array.from({ length: count }, () => aNode(randomUUID()));
  const rollout = new SteppedRollout({ nodes, spec: {} }).settle();
  const { waves } = rollout.progress;
  const whole = { ...rollout.progress, started: waves.flat() };
  return { waves, bytes: Buffer.byteLength(JSON.stringify(whole)) };
}

describe("the plan of an update", () => {
  it("refuses more nodes than its progress holds, before any of them is started", () => {
    for (const count of [1, 200, 600]) {
      const { waves, bytes } = largest(count);
      expect([isTooLarge(waves), bytes < maxValueBytes], String(count)).to.deep.equal([false, true]);
    }
    const { waves, bytes } = largest(1_000);
    expect([isTooLarge(waves), bytes > maxValueBytes]).to.deep.equal([true, true]);
  });
});
