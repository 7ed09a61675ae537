import { expect } from "chai";
import { checkOrder, rememberOrder, type OrderMemory } from "#rollout/node-fence.ts";
import type { FencingToken } from "#rollout/records.ts";

function fence(more: Partial<FencingToken> = {}): FencingToken {
  return { name: "u", epoch: 2, owner: "c1", generation: 3, seq: 7, ...more };
}
const idle: OrderMemory = { fence: fence(), isBusy: false };
const busy: OrderMemory = { fence: fence(), isBusy: true };
const other = { name: "v", epoch: 1, owner: "c2", generation: 1, seq: 1 };
const later: OrderMemory = { ...rememberOrder(idle, other), isBusy: false };
const nodes: Readonly<Record<string, OrderMemory | undefined>> = {
  new: undefined,
  idle,
  busy,
  "idle after another update": later,
};

/** A node, an order, and whether the node accepts, knows or refuses the order. */
const cases: readonly (readonly [string, Partial<FencingToken>, string])[] = [
  ["new", {}, "accept"],
  ["idle", { seq: 8 }, "accept"],
  ["busy", { seq: 8 }, "accept"],
  ["idle", { seq: 7 }, "known"],
  ["idle", { seq: 6 }, "known"],
  ["idle", { epoch: 1, seq: 99 }, "refused"],
  ["idle", { epoch: 1, owner: "c2", seq: 99 }, "refused"],
  ["idle", { owner: "c2", seq: 99 }, "refused"],
  ["idle", { epoch: 3, owner: "c2", seq: 1 }, "accept"],
  ["busy", { epoch: 3, owner: "c2", seq: 1 }, "accept"],
  ["idle", { generation: 2, seq: 99 }, "refused"],
  ["idle", { epoch: 3, owner: "c2", generation: 2 }, "refused"],
  ["idle", { generation: 4, seq: 8 }, "accept"],
  ["busy", { generation: 4, seq: 8 }, "refused"],
  ["idle", other, "accept"],
  ["busy", other, "refused"],
  ["idle after another update", { seq: 7 }, "known"],
  ["idle after another update", { epoch: 1, seq: 99 }, "refused"],
  ["idle after another update", { owner: "c2", seq: 99 }, "refused"],
  ["idle after another update", { generation: 2, seq: 99 }, "refused"],
  ["idle after another update", { seq: 8 }, "accept"],
];

describe("a node's check of an order's fencing token", () => {
  for (const [node, order, wanted] of cases)
    it(`at a node that is ${node} gives “${wanted}” for ${JSON.stringify(order)}`, () => {
      const judged = checkOrder(nodes[node], fence(order));
      expect(judged.accept ? "accept" : judged.why).to.equal(wanted);
    });

  it("remembers the last order of each of at most 200 former updates", () => {
    let remembered: Omit<OrderMemory, "isBusy"> = { fence: fence({ name: "u0" }) };
    for (let index = 1; index <= 300; index++)
      for (const seq of [1, 2])
        remembered = rememberOrder({ ...remembered, isBusy: false }, fence({ name: `u${index}`, seq }));
    expect([remembered.past?.length, remembered.past?.at(-1)]).to.deep.equal([200, fence({ name: "u299", seq: 2 })]);
  });

  it("has the reason of a refusal", () =>
    expect(checkOrder(busy, fence({ name: "v" }))).to.deep.include({
      message: "this node is busy with generation 3 of “u”, of c1",
    }));
});
