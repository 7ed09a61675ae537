import { expect } from "chai";
import { keys, mergeKindOf } from "#controller/cluster/registers.ts";
import { compareRegisters } from "#crdt/merge-kind.ts";
import { LwwMap } from "#crdt/lww-map.ts";
import type { Register } from "#crdt/register.ts";
import fc from "#support/properties.ts";

const id = "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11";
const write = (key: string, value: unknown, ms: number, o = "a#1"): Register => ({
  key,
  text: value === null ? null : JSON.stringify(value),
  ms,
  c: 0,
  o,
  s: ms,
  x: { origins: [], seqs: [] },
});

/** The value of the winner of two writes, which is the same in both orders of arrival. */
function winner(one: Register, other: Register): unknown {
  const texts = [
    [one, other],
    [other, one],
  ].map((registers) => {
    const map = new LwwMap(mergeKindOf);
    for (const register of registers) map.merge([register], []);
    return map.get(one.key)?.text;
  });
  expect(texts[0]).to.equal(texts[1]);
  return JSON.parse(texts[0] ?? "null");
}

describe("the merge of two writes of a key", () => {
  const { approval, label, reject, removed } = keys.node(id);
  const update = keys.update("u");

  it("prefers a reject within its epoch, an approval to pending, and the next epoch to both", () => {
    const decided = (epoch: number, state: string, ms: number) => write(approval, { epoch, state }, ms);
    expect(winner(decided(1, "rejected", 1), decided(1, "approved", 2))).to.have.property("state", "rejected");
    expect(winner(decided(1, "approved", 1), decided(1, "pending", 2))).to.have.property("state", "approved");
    expect(winner(decided(2, "approved", 1), decided(1, "rejected", 2))).to.have.property("state", "approved");
  });

  it("prefers the higher epoch of an owner to a later write, and the later write of one epoch", () => {
    const owner = (epoch: number, ms: number) => write(update.owner, { epoch, ms }, ms);
    expect(winner(owner(2, 1), owner(1, 2))).to.have.property("epoch", 2);
    expect(winner(owner(2, 1), owner(2, 2))).to.have.property("ms", 2);
  });

  it("prefers the higher generation of a manifest to a later write, and the later write of one generation", () => {
    const head = (generation: number, ms: number) => write(update.head, { generation, ms }, ms);
    expect(winner(head(6, 1), head(4, 2))).to.have.property("generation", 6);
    expect(winner(head(6, 1), head(6, 2))).to.have.property("ms", 2);
  });

  for (const key of [update.head, update.owner])
    it(`${key}: prefers a deletion to every later write`, () => {
      const late = { epoch: 9, generation: 9 };
      expect(winner(write(key, null, 1), write(key, late, 2))).to.equal(null);
      expect(winner(write(key, late, 2), write(key, null, 3))).to.equal(null);
    });

  it("deletes the record of a certificate after the certificate's end only", () => {
    const key = keys.certificate("0a");
    const value = (ms: number, at = 1) => write(key, { notAfter: new Date(ms).toISOString() }, at);
    const notAfter = (ms: number) => new Date(ms).toISOString();
    expect(winner(value(10), write(key, null, 11))).to.equal(null);
    expect(winner(value(10), write(key, null, 9))).to.deep.equal({ notAfter: notAfter(10) });
    expect(winner(write(key, { at: 1 }, 1), write(key, null, 11))).to.deep.equal({ at: 1 });
    const local = { notAfter: "1970-01-01T00:00:00" };
    expect(winner(write(key, local, 1), write(key, null, 9e8))).to.deep.equal(local);
    // The later end wins, else the first write; so three writes of one key have one order.
    expect(winner(value(10), value(20, 2))).to.deep.equal({ notAfter: notAfter(20) });
    expect(winner(value(20, 2), write(key, null, 15))).to.deep.equal({ notAfter: notAfter(20) });
    expect(winner(write(key, null, 15), write(key, null, 5))).to.equal(null);
  });

  it("prefers the first removal of a node, and never deletes it", () => {
    expect(winner(write(removed, { at: 1 }, 1), write(removed, { at: 2 }, 2))).to.have.property("at", 1);
    expect(winner(write(removed, { at: 1 }, 1), write(removed, null, 2))).to.have.property("at", 1);
    expect(winner(write(removed, null, 1), write(removed, { at: 2 }, 2))).to.have.property("at", 2);
  });

  it("prefers the deletion of a reject to every later write", () =>
    expect(winner(write(reject("r"), null, 1), write(reject("r"), { by: "ann" }, 2))).to.equal(null));

  it("orders values with an end, values without one and deletions totally", () => {
    const key = keys.certificate("0a");
    const time = fc.integer({ min: 0, max: 6 });
    const until = time.map((at) => ({ notAfter: new Date(at).toISOString() }));
    const value = fc.oneof(fc.constant(null), fc.constant({}), until);
    const registers = fc.array(fc.record({ value, ms: time }), { minLength: 3, maxLength: 5 });
    fc.assert(
      fc.property(registers, (drafts) => {
        const all = drafts.map((draft, index) => write(key, draft.value, draft.ms, `o#${index}`));
        const sorted = all.toSorted((a, b) => compareRegisters("first", a, b));
        for (const [index, a] of sorted.entries())
          for (const b of sorted.slice(index + 1)) {
            expect(compareRegisters("first", a, b)).to.be.lessThan(0);
            expect(compareRegisters("first", b, a)).to.be.greaterThan(0);
          }
      }),
    );
  });

  it("prefers the higher origin of two writes with one stamp", () =>
    expect(winner(write(label("tier"), "a", 1), write(label("tier"), "b", 1, "b#1"))).to.equal("b"));
});
