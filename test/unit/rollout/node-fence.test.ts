import { expect } from "chai";
import { judgeOrder, rememberOrder, type Remembered } from "#rollout/node-fence.ts";
import type { Fence } from "#rollout/records.ts";

function fence(more: Partial<Fence> = {}): Fence {
  return { name: "u", epoch: 2, owner: "c1", generation: 3, seq: 7, ...more };
}
const idle: Remembered = { fence: fence(), isBusy: false };
const busy: Remembered = { fence: fence(), isBusy: true };

function verdict(remembered: Remembered | undefined, order: Partial<Fence>): string {
  const judged = judgeOrder(remembered, fence(order));
  return judged.accept ? "accept" : judged.why;
}

describe("the fence of a node", () => {
  it("takes the first order that it ever sees", () => expect(verdict(undefined, {})).to.equal("accept"));

  it("takes its owner's next order, and none twice", () => {
    expect([verdict(idle, { seq: 8 }), verdict(busy, { seq: 8 })]).to.deep.equal(["accept", "accept"]);
    expect([verdict(idle, { seq: 7 }), verdict(idle, { seq: 6 })]).to.deep.equal(["known", "known"]);
  });

  it("refuses an older epoch, whatever its seq", () => {
    expect(verdict(idle, { epoch: 1, seq: 99 })).to.equal("refused");
    expect(verdict(idle, { epoch: 1, owner: "c2", seq: 99 })).to.equal("refused");
  });

  it("remembers the last orders of 200 other updates", () => {
    let remembered: Omit<Remembered, "isBusy"> = { fence: fence({ name: "u0" }) };
    for (let index = 1; index <= 300; index++)
      remembered = rememberOrder({ ...remembered, isBusy: false }, fence({ name: `u${index}` }));
    expect([remembered.past?.length, remembered.past?.at(-1)?.name]).to.deep.equal([200, "u299"]);
  });

  it("refuses another owner of the same epoch", () =>
    expect(verdict(idle, { owner: "c2", seq: 99 })).to.equal("refused"));

  it("takes a later epoch's first order, also while it is busy with that manifest", () => {
    expect(verdict(idle, { epoch: 3, owner: "c2", seq: 1 })).to.equal("accept");
    expect(verdict(busy, { epoch: 3, owner: "c2", seq: 1 })).to.equal("accept");
  });

  it("refuses an older manifest for ever, also from a later epoch's owner who does not know the new one", () => {
    expect(verdict(idle, { generation: 2, seq: 99 })).to.equal("refused");
    expect(verdict(idle, { epoch: 3, owner: "c2", generation: 2 })).to.equal("refused");
  });

  it("takes another manifest only when it is at rest", () => {
    expect(verdict(idle, { generation: 4, seq: 8 })).to.equal("accept");
    expect(verdict(busy, { generation: 4, seq: 8 })).to.equal("refused");
    expect(verdict(idle, { name: "v", epoch: 1, owner: "c2", generation: 1, seq: 1 })).to.equal("accept");
    expect(verdict(busy, { name: "v", epoch: 1, owner: "c2", generation: 1, seq: 1 })).to.equal("refused");
  });

  it("does not begin an update again whose last order comes late, after another had the node", () => {
    const other = { name: "v", epoch: 1, owner: "c2", generation: 1, seq: 4 };
    const later: Remembered = { ...rememberOrder(idle, other), isBusy: false };
    expect([verdict(later, { seq: 7 }), verdict(later, { epoch: 1, seq: 99 })]).to.deep.equal(["known", "refused"]);
    expect(verdict(later, { owner: "c2", seq: 99 })).to.equal("refused");
    expect(verdict(later, { generation: 2, seq: 99 })).to.equal("refused");
    expect(verdict(later, { seq: 8 })).to.equal("accept");
  });

  it("remembers the last order of each update once", () => {
    const other = fence({ name: "v" });
    const first = { ...rememberOrder(undefined, fence()), isBusy: false };
    const second = { ...rememberOrder(first, other), isBusy: false };
    expect(rememberOrder(second, fence({ seq: 9 }))).to.deep.equal({ fence: fence({ seq: 9 }), past: [other] });
  });

  it("says why it refuses", () => {
    const judged = judgeOrder(busy, fence({ name: "v" }));
    expect(judged).to.deep.include({ message: "this node is busy with generation 3 of “u”, of c1" });
  });
});
