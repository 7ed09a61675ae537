import { expect } from "chai";
import { isGranted, mayGrant, nextEpoch, type Grant } from "#rollout/takeover.ts";

const owner = { epoch: 3, owner: "c1" };
const controllers = new Set(["c1", "c2", "c3", "c4"]);

function grants(...texts: readonly string[]): readonly Grant[] {
  return texts.map((text) => {
    const [epoch, controller = "", claimant = ""] = text.split(" ");
    return { epoch: Number(epoch), controller, claimant };
  });
}

describe("a takeover", () => {
  it("claims an epoch that nobody had, claimed or granted", () =>
    expect([nextEpoch(owner, []), nextEpoch(owner, [{ epoch: 2 }, { epoch: 6 }])]).to.deep.equal([4, 7]));

  it("is granted once an epoch, and never what is over", () => {
    expect([mayGrant(owner, [], "c2", 4), mayGrant(owner, [], "c2", 3)]).to.deep.equal([true, false]);
    expect(mayGrant(owner, grants("4 c2 c3"), "c2", 4)).to.equal(false);
    expect(mayGrant(owner, grants("5 c2 c3"), "c2", 4)).to.equal(false);
    expect(mayGrant(owner, grants("4 c2 c3"), "c2", 5)).to.equal(true);
    expect(mayGrant(owner, grants("4 c1 c3"), "c2", 4)).to.equal(true);
  });

  it("needs more than half of the registered controllers, each of them once", () => {
    const claim = { claimant: "c2", epoch: 4 };
    const three = grants("4 c2 c2", "4 c3 c2", "4 c4 c2");
    expect(isGranted(three, controllers, claim)).to.equal(true);
    expect(isGranted(three.slice(1), controllers, claim)).to.equal(false);
    expect(isGranted([...three.slice(1), ...three.slice(1)], controllers, claim)).to.equal(false);
    expect(isGranted([...three.slice(1), ...grants("4 x c2")], controllers, claim)).to.equal(false);
    expect(isGranted([...three.slice(1), ...grants("4 c1 c3", "5 c1 c2")], controllers, claim)).to.equal(false);
  });
});
