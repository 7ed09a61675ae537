import { expect } from "chai";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import { encodePage } from "#crdt/page.ts";

describe("the state of a replica", () => {
  it("ignores a push with a gap before it, because the version vector has no gaps", () => {
    const state = new ClusterState({ mergeKindOf: () => "lww" });
    const register = { key: "k", text: "1", ms: 1, c: 0, o: "a#1", s: 2, x: { origins: [], seqs: [] } };
    const push = { t: "apply", page: encodePage([register]), from: [["a#1", 1]], upto: [["a#1", 2]] } as const;
    expect(state.apply(push)).to.deep.equal([]);
    expect([state.map.get("k"), state.map.vector.get("a#1")]).to.deep.equal([undefined, undefined]);
    const first = { ...register, key: "first", s: 1 };
    state.apply({ t: "apply", page: encodePage([first]), upto: [["a#1", 1]] });
    expect(state.apply(push)).to.deep.equal(["k"]);
  });

  it("keeps a tombstone while a concurrent write that lost to it is in conflict", () => {
    const state = new ClusterState({ mergeKindOf: () => "lww" });
    const write = { key: "k", text: "1", ms: 1, c: 0, o: "a#1", s: 1, x: { origins: [], seqs: [] } };
    const deletion = { ...write, text: null, ms: 2, o: "b#1" };
    state.apply({
      t: "apply",
      page: encodePage([write, deletion]),
      upto: [
        ["a#1", 1],
        ["b#1", 1],
      ],
    });
    const standing = state.map.get("k");
    state.collect(standing ? [standing] : []);
    expect([standing?.text, state.map.get("k")]).to.deep.equal([null, standing]);
  });
});
