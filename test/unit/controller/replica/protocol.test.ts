import { expect } from "chai";
import { registerKindOf, registerKinds, mergeKindOf } from "#controller/cluster/registers.ts";
import { protocols, speaks } from "#controller/replica/messages.ts";
import { conflictId } from "#crdt/conflict.ts";
import { Digest } from "#crdt/digest.ts";
import { encodeStamp } from "#crdt/hlc.ts";
import { encodePage } from "#crdt/page.ts";
import type { MergeKind } from "#crdt/merge-kind.ts";
import type { Register } from "#crdt/register.ts";

const [a, b]: readonly [Register, Register] = [
  {
    key: "node/6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11/label/tier",
    text: '{"value":"ssd"}',
    ms: 1_770_000_000_000,
    c: 3,
    o: "c1#00000001",
    s: 7,
    x: { origins: ["c2#00000002"], seqs: [4] },
  },
  {
    key: "object/Cluster/ünit",
    text: null,
    ms: 1_770_000_000_001,
    c: 0,
    o: "c2#00000002",
    s: 5,
    x: { origins: [], seqs: [] },
  },
];
const other: Register = { ...a, text: '{"value":"nvme"}', o: "c2#00000002", s: 6 };

/**
 * Controllers of two versions hold the same state only if these encodings are equal in both. A change here needs the next protocol
 * version (src/controller/replica/messages.ts); with peers of the old version, controllers keep the old encodings.
 */
describe("F-29: replication protocol 1", () => {
  it("is supported, with every peer that supports a common version", () => {
    const [oldest, newest] = protocols;
    expect(oldest).to.be.at.most(1);
    expect([speaks([newest, newest + 9]), speaks([newest + 1, newest + 9])]).to.deep.equal([true, false]);
    expect([speaks([0, oldest]), speaks([0, oldest - 1])]).to.deep.equal([true, false]);
  });

  it("encodes pages and stamps in this form", () => {
    expect(JSON.stringify(encodePage([a, b]))).to.equal(
      '{"origins":["c1#00000001","c2#00000002"],"contexts":[[1,4],[]],"registers":[' +
        '["node/6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11/label/tier","{\\"value\\":\\"ssd\\"}",1770000000000,3,0,7,0],' +
        '["object/Cluster/ünit",null,1770000000001,0,1,5,1]]}',
    );
    expect(encodeStamp(a)).to.equal("019c1c38a4000003");
  });

  it("has this digest and these ids of conflicts", () => {
    const digest = new Digest();
    for (const register of [a, b, { ...b, text: '{"a":"é"}' }]) digest.add(register);
    expect(digest.total()).to.equal("db8fee042c86b1a2");
    expect(conflictId(a.key, [a, other])).to.equal("3fc33381c9145cdc");
    expect(conflictId(a.key, [other, a])).to.equal(conflictId(a.key, [a, other]));
  });

  it("merges each kind of key in this way", () => {
    const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
    const hash = "0".repeat(64);
    const ofNode = "reg expected net storage label/tier taint/k".split(" ");
    const ofController = "auth addr version settings sub-ca".split(" ");
    const merges: Readonly<Record<MergeKind, readonly string[]>> = {
      lww: [
        ...ofNode.map((name) => `node/${id}/${name}`),
        ...ofController.map((name) => `controller/${id}/${name}`),
        "object/Cluster/main",
        "cluster/config/dns",
        ...["approved", "wish/cancel", "attendance", `hook/${id}/drain`].map((name) => `update/u/${name}`),
        // A key of a newer version.
        "quota/team-a",
      ],
      approval: [`node/${id}/approval`],
      first: [`node/${id}/removed`, `operator/ann/key/${hash}`, `revoked/${hash}`, "cert/0a", "update/u/removed"],
      epoch: ["owner", "progress", `node/${id}`, `report/${id}`].map((name) => `update/u/${name}`),
      generation: ["update/u/head"],
      "remove-wins": ["conflict/4e4e3ba010c58a0c", `node/${id}/reject/0`],
    };
    for (const [kind, keys] of Object.entries(merges))
      for (const key of keys) expect(mergeKindOf(key), key).to.equal(kind);
    const known = new Set(Object.values(merges).flat().map(registerKindOf));
    expect([...known]).to.have.members([...Object.keys(registerKinds), undefined]);
  });
});
