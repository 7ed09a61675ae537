import { expect } from "chai";
import { cutPage, startDelta } from "#crdt/delta.ts";
import { KeyIndex } from "#crdt/key-index.ts";
import { LwwMap } from "#crdt/lww-map.ts";
import { MalformedPage, PageReader } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { collectable } from "#crdt/tombstones.ts";

const nothing = { origins: [], seqs: [] };

function write(key: string, s: number, text: string | null = "1", o = "a#1"): Register {
  return { key, text, ms: 1000 + s, c: 0, o, s, x: nothing };
}

describe("the map of registers", () => {
  it("iterates in order while thousands of keys are written, dropped and written again", () => {
    const map = new LwwMap(() => "lww");
    const keyOf = (index: number): string => `k/${String((index * 7919) % 20_000).padStart(5, "0")}`;
    for (let index = 0; index < 20_000; index++) map.merge([write(keyOf(index), index + 1)], []);
    const gone = Array.from(map.all()).filter(({ key }) => key.endsWith("1"));
    for (const register of gone) map.drop(register);
    for (const { key } of gone.slice(0, 5)) map.merge([write(key, 30_000)], []);
    const keys = Array.from(map.withPrefix("k/"), ({ key }) => key);
    expect(keys).to.deep.equal(Array.from(map.all(), ({ key }) => key).toSorted());
    expect(new Set(keys).size).to.equal(18_005);
  });

  it("finds the latest writes of an origin after most were superseded", () => {
    const map = new LwwMap(() => "lww");
    for (let s = 1; s <= 1000; s++) map.merge([write(`k/${s % 10}`, s)], [["a#1", s]]);
    expect(Array.from(map.since("a#1", 0, 1000), ({ s }) => s)).to.deep.equal([
      991, 992, 993, 994, 995, 996, 997, 998, 999, 1000,
    ]);
    expect(Array.from(map.since("a#1", 995, 998), ({ s }) => s)).to.deep.equal([996, 997, 998]);
  });

  it("sends writes between two pages before the last page, which has the vector", () => {
    const map = new LwwMap(() => "lww");
    for (let s = 1; s <= 6; s++) map.merge([write(`k/${s}`, s)], [["a#1", s]]);
    const limits = { registers: 2, bytes: 1 << 20 };
    const first = cutPage(map, startDelta(map, new Map()), limits);
    // k/5 is superseded before it was sent, by an origin that the pass has already handled.
    const later = { ...write("k/5", 1000, "2", "A#1"), x: { origins: ["a#1"], seqs: [6] } };
    map.merge([later], [["A#1", 1000]]);
    const sent = first.registers.map(({ key }) => key);
    let { next } = first;
    expect(next).not.to.equal(undefined);
    while (next) {
      const page = cutPage(map, next, limits);
      sent.push(...page.registers.map(({ key, text }) => key + (text === "2" ? "'" : "")));
      ({ next } = page);
    }
    expect(sent).to.deep.equal(["k/1", "k/2", "k/3", "k/4", "k/6", "k/5'"]);
  });

  it("ignores a late copy of a write that a collected tombstone deleted", () => {
    const map = new LwwMap(() => "lww");
    const deletion = write("k", 2, null);
    map.merge([write("k", 1), deletion], [["a#1", 2]]);
    map.drop(deletion);
    expect(map.merge([write("k", 1)], [["a#1", 1]]).changed).to.deep.equal([]);
    expect([map.get("k"), map.vector.get("a#1")]).to.deep.equal([undefined, 2]);
  });

  it("finds two writes with one dot, and keeps the first", () => {
    const map = new LwwMap(() => "lww");
    map.merge([write("k", 1)], [["a#1", 1]]);
    const twin = write("k", 1, "2");
    map.merge([write("k", 1), twin], []);
    expect(map.findEquivocations([write("k", 1), twin])).to.deep.equal([twin]);
    expect([map.get("k")?.text, map.merge([twin], [], true).changed]).to.deep.equal(["1", ["k"]]);
  });

  it("sends a losing write that the winner had not seen, until a write that has seen both", () => {
    const map = new LwwMap(() => "lww");
    const [lost, won] = [write("k", 1), write("k", 2, "2", "b#1")];
    map.merge(
      [lost, won],
      [
        ["a#1", 1],
        ["b#1", 2],
      ],
    );
    expect([...map.since("a#1", 0, 1)]).to.deep.equal([lost]);
    map.merge([{ ...write("k", 3, "3"), x: { origins: ["b#1"], seqs: [2] } }], [["a#1", 3]]);
    expect([...map.siblings.all()]).to.deep.equal([]);
  });

  it("is sent in pages of bounded bytes", () => {
    const map = new LwwMap(() => "lww");
    for (let s = 1; s <= 4; s++) map.merge([write(`k/${s}`, s, JSON.stringify("x".repeat(400)))], [["a#1", s]]);
    const page = cutPage(map, startDelta(map, new Map()), { registers: 100, bytes: 1000 });
    expect([page.registers.length, page.next === undefined]).to.deep.equal([2, false]);
  });

  it("iterates a key that was added twice once", () => {
    const index = new KeyIndex(() => true);
    for (const key of ["b", "a", "b"]) index.add(key);
    expect([...index.withPrefix("")]).to.deep.equal(["a", "b"]);
    index.add("a");
    expect([...index.withPrefix("")]).to.deep.equal(["a", "b"]);
  });
});

describe("tombstones", () => {
  const own = new Map([
    ["a#1", 5],
    ["b#1", 3],
  ]);
  const tombstone = write("k", 4, null);

  it("are collectable when every member has them, and this replica has every write of the members", () => {
    expect(collectable([tombstone], own, [new Map([["a#1", 4]])])).to.deep.equal([tombstone]);
    expect(collectable([tombstone], own, [])).to.deep.equal([tombstone]);
  });

  it("stay while a member was not heard, lacks them, or has a write that this replica lacks", () => {
    expect(collectable([tombstone], own, [undefined])).to.deep.equal([]);
    expect(collectable([tombstone], own, [new Map([["a#1", 3]])])).to.deep.equal([]);
    const ahead = new Map([
      ["a#1", 4],
      ["b#1", 4],
    ]);
    expect(collectable([tombstone], own, [ahead])).to.deep.equal([]);
  });
});

describe("pages", () => {
  it("that are malformed are refused", () => {
    const good = { origins: ["a#1"], contexts: [[]], registers: [["k", "1", 1, 0, 0, 1, 0]] };
    expect(new PageReader().read(good)).to.have.length(1);
    const bad: unknown[] = [
      null,
      {},
      { ...good, origins: [7] },
      { ...good, origins: [""] },
      { ...good, registers: [["k", "1", 1, 0, 0, -1, 0]] },
      { ...good, contexts: [[0]] },
      { ...good, contexts: [[9, 1]] },
      { ...good, registers: [null] },
      { ...good, registers: [["", "1", 1, 0, 0, 1, 0]] },
      { ...good, registers: [["k", 1, 1, 0, 0, 1, 0]] },
      { ...good, registers: [["k", "1", -1, 0, 0, 1, 0]] },
      { ...good, registers: [["k", "1", 1, 65_536, 0, 1, 0]] },
      { ...good, registers: [["k", "1", 1, 0, 3, 1, 0]] },
      { ...good, registers: [["k", "1", 1, 0, 0, 1.5, 0]] },
      { ...good, registers: [["k", "1", 1, 0, 0, 1, "__proto__"]] },
      { ...good, registers: [["k", "1", 1, 0, "length", 1, 0]] },
      { ...good, contexts: [["length", 1]] },
    ];
    for (const page of bad) expect(() => new PageReader().read(page), JSON.stringify(page)).to.throw(MalformedPage);
  });
});
