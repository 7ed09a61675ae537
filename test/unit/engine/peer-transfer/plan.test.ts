import { expect } from "chai";
import { TransferPlan } from "#engine/peer-transfer/plan.ts";

describe("TransferPlan", () => {
  const withSource = (...others: readonly string[]): TransferPlan => {
    const plan = new TransferPlan();
    plan.request("a");
    for (const other of others) plan.request(other);
    return plan;
  };

  it("has the bastion send to the first node, and the others wait", () => {
    const plan = new TransferPlan();
    expect([plan.request("a"), plan.request("b"), plan.awaitedBy("b")]).to.deep.equal([[{ node: "a" }], [], "a"]);
    expect(plan.awaitedBy("a")).to.equal(undefined);
  });

  it("lets two nodes at a time read from each source", () => {
    const plan = withSource("b", "c", "d", "e", "f");
    expect(plan.arrived("a", { serves: true })).to.deep.equal([
      { node: "b", from: "a" },
      { node: "c", from: "a" },
    ]);
    expect(plan.arrived("b", { serves: true })).to.deep.equal([
      { node: "d", from: "b" },
      { node: "e", from: "a" },
      { node: "f", from: "b" },
    ]);
    expect([plan.request("g"), plan.awaitedBy("g")]).to.deep.equal([[], "a"]);
    expect(plan.arrived("c", { serves: false })).to.deep.equal([{ node: "g", from: "a" }]);
  });

  it("has the bastion send to a waiting node when the first one leaves", () => {
    const plan = withSource("b", "c");
    expect([plan.leave("a"), plan.leave("b")]).to.deep.equal([[{ node: "b" }], [{ node: "c" }]]);
  });

  it("has the bastion send after a failed transfer, while others wait", () => {
    const plan = withSource("b");
    plan.arrived("a", { serves: true });
    expect([plan.failed("b", { isBad: true }), plan.request("c")]).to.deep.equal([[], []]);
    expect(plan.arrived("b", { serves: true })).to.deep.equal([{ node: "c", from: "b" }]);
  });

  it("removes a source after two failed transfers", () => {
    const plan = withSource("b", "c");
    plan.arrived("a", { serves: true });
    plan.failed("b", { isBad: false });
    plan.failed("c", { isBad: false });
    plan.arrived("b", { serves: false });
    plan.arrived("c", { serves: false });
    expect(plan.request("d")).to.deep.equal([{ node: "d" }]);
  });

  it("has eight sources at most", () => {
    const plan = withSource("b", "c", "d", "e", "f", "g", "h");
    for (const node of "abcdefgh") {
      expect([plan.wantsSource, plan.isSource(node)]).to.deep.equal([true, false]);
      plan.arrived(node, { serves: true });
    }
    expect([plan.wantsSource, plan.isSource("h")]).to.deep.equal([false, true]);
    plan.removeSource("a");
    expect([plan.wantsSource, plan.isSource("a")]).to.deep.equal([true, false]);
  });

  it("ignores results of a node that left", () => {
    const plan = withSource("b");
    expect([plan.leave("a"), plan.arrived("a", { serves: true })]).to.deep.equal([[{ node: "b" }], []]);
    expect(plan.failed("a", { isBad: true })).to.deep.equal([]);
    expect([plan.isSource("a"), plan.isTravelling("a"), plan.isTravelling("b")]).to.deep.equal([false, false, true]);
  });

  it("has the bastion send again when no source is left", () => {
    const plan = withSource();
    plan.arrived("a", { serves: true });
    plan.removeSource("a");
    expect(plan.request("b")).to.deep.equal([{ node: "b" }]);
  });

  it("serves a waiting node after its source was removed", () => {
    const plan = withSource("b", "c", "d");
    plan.arrived("a", { serves: true });
    expect([plan.removeSource("a"), plan.failed("b", { isBad: true })]).to.deep.equal([[], []]);
    expect(plan.failed("c", { isBad: true })).to.deep.equal([]);
    plan.leave("b");
    expect(plan.leave("c")).to.deep.equal([{ node: "d" }]);
  });
});
