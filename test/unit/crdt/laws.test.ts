import { expect } from "chai";
import fc from "#support/properties.ts";
import { hasSeen } from "#crdt/conflict.ts";
import { cutPage, startDelta } from "#crdt/delta.ts";
import { compareStamps, decodeStamp, encodeStamp, nextStamp, witness } from "#crdt/hlc.ts";
import { LwwMap } from "#crdt/lww-map.ts";
import { compareRegisters } from "#crdt/merge-kind.ts";
import { encodePage, PageReader } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { toWire } from "#crdt/version-vector.ts";
import { anyActs, play, Writer, type Transaction } from "#support/registers.ts";
import { mergeKindOf } from "../../sim/kinds.ts";

/** The number of random cases of each law; their seed differs with each commit. */
const numRuns = Number(process.env["KCORE_LAW_CASES"] ?? 200);
const holds = <T>(arbitrary: fc.Arbitrary<T>, law: (value: T) => void): void =>
  fc.assert(fc.property(arbitrary, law), { numRuns });

const anyStamp = fc.record({ ms: fc.integer({ min: 0, max: 2 ** 48 - 1 }), c: fc.integer({ min: 0, max: 0xffff }) });
const anyOrder = fc.infiniteStream(fc.nat());

/** The state after these batches of transactions. */
function stateOf(batches: readonly (readonly Transaction[])[]): Writer {
  const reader = new Writer("reader#1");
  for (const batch of batches) reader.take(batch);
  return reader;
}

function byDot(a: Register, b: Register): number {
  return a.key < b.key || (a.key === b.key && `${a.o} ${a.s}` < `${b.o} ${b.s}`) ? -1 : 1;
}

/** An order of the transactions that keeps each writer's own order. */
function shuffle(all: readonly Transaction[], stream: fc.Stream<number>): readonly Transaction[] {
  const left = Map.groupBy(all, ({ origin }) => origin);
  const result: Transaction[] = [];
  for (const draw of stream) {
    const queues = [...left.values()].filter((queue) => queue.length > 0);
    const queue = queues[draw % Math.max(queues.length, 1)];
    if (!queue) return result;
    result.push(queue.shift() as Transaction);
  }
  return result;
}

describe("the laws of the CRDT", () => {
  it("order registers totally, within each kind", () => {
    holds(anyActs, (acts) => {
      const { all } = play(acts);
      for (const registers of Map.groupBy(
        all.flatMap(({ registers }) => registers),
        ({ key }) => key,
      ).values()) {
        const sorted = registers.toSorted((a, b) => compareRegisters(mergeKindOf(a.key), a, b));
        for (const [index, a] of sorted.entries())
          for (const b of sorted.slice(index + 1)) {
            expect(compareRegisters(mergeKindOf(a.key), a, b)).to.be.lessThan(0);
            expect(compareRegisters(mergeKindOf(a.key), b, a)).to.be.greaterThan(0);
          }
      }
    });
  });

  it("give the same state in any order", () => {
    holds(fc.tuple(anyActs, anyOrder), ([acts, stream]) => {
      const { all } = play(acts);
      const expected = stateOf([all]).view();
      expect(stateOf(shuffle(all, stream).map((transaction) => [transaction])).view()).to.deep.equal(expected);
    });
  });

  it("give the same state in any batches, with repeats", () => {
    holds(fc.tuple(anyActs, fc.array(fc.integer({ min: 0, max: 24 }))), ([acts, cuts]) => {
      const { all } = play(acts);
      const places = [0, ...cuts.toSorted((a, b) => a - b), all.length];
      const batches = places.map((from, index) => all.slice(from, places[index + 1]));
      expect(stateOf([...batches, all, ...batches]).view()).to.deep.equal(stateOf([all]).view());
    });
  });

  it("let all writers converge by pages of any size that are cut from the state", () => {
    holds(fc.tuple(anyActs, fc.integer({ min: 1, max: 5 })), ([acts, registers]) => {
      const { all, writers } = play(acts);
      const joined = new LwwMap(mergeKindOf);
      const reader = new PageReader();
      for (const { map } of writers) {
        const received: Register[] = [];
        let cursor: ReturnType<typeof startDelta> | undefined = startDelta(map, new Map(joined.vector));
        while (cursor) {
          const delta: ReturnType<typeof cutPage> = cutPage(map, cursor, { registers, bytes: 1 << 20 });
          const wire: unknown = JSON.parse(JSON.stringify(encodePage(delta.registers)));
          received.push(...reader.read(wire));
          cursor = delta.next;
        }
        joined.merge(received, map.vector);
      }
      expect([...joined.withPrefix("")]).to.deep.equal([...stateOf([all]).map.withPrefix("")]);
      expect(joined.digest.sums()).to.deep.equal(stateOf([all]).map.digest.sums());
      expect([...joined.siblings.all()].toSorted(byDot)).to.deep.equal(
        [...stateOf([all]).map.siblings.all()].toSorted(byDot),
      );
    });
  });

  it("keep transactions whole within a page", () => {
    holds(fc.tuple(anyActs, fc.integer({ min: 1, max: 3 })), ([acts, registers]) => {
      const { map } = stateOf([play(acts).all]);
      let last = "";
      for (let cursor: ReturnType<typeof startDelta> | undefined = startDelta(map, new Map()); cursor;) {
        const page: ReturnType<typeof cutPage> = cutPage(map, cursor, { registers, bytes: 1 << 20 });
        const dots = page.registers.map(({ o, s }) => `${o} ${s}`);
        if (dots.length > 0) expect(dots[0]).not.to.equal(last);
        last = dots.at(-1) ?? last;
        cursor = page.next;
      }
    });
  });

  it("keep as siblings exactly the losing writes that no other write had seen, in any order", () => {
    holds(fc.tuple(anyActs, anyOrder), ([acts, stream]) => {
      const { all } = play(acts);
      const registers = all.flatMap((one) => one.registers);
      const joined = stateOf(shuffle(all, stream).map((one) => [one]));
      const due = registers.filter((register) => {
        const { key } = register;
        if (mergeKindOf(key) === "remove-wins" || joined.map.get(key) === register) return false;
        return !registers.some((other) => other !== register && other.key === key && hasSeen(other, register));
      });
      expect(joined.lost()).to.deep.equal(due.map(({ key, o, s }) => `${key} ${o} ${s}`).toSorted());
    });
  });

  it("keep the digest equal to that of the state", () => {
    holds(anyActs, (acts) => {
      const { map } = stateOf([play(acts).all]);
      const fresh = new LwwMap(mergeKindOf);
      fresh.merge(map.all(), toWire(map.vector));
      for (const lost of map.siblings.all()) map.drop(lost);
      expect(fresh.digest.sums()).to.deep.equal(map.digest.sums());
      for (const register of map.all()) map.drop(register);
      expect(new Set(map.digest.sums())).to.deep.equal(new Set(["0".repeat(16)]));
    });
  });
});

describe("the hybrid logical clock", () => {
  it("is above every stamp that it issued or saw, with any wall clock", () => {
    holds(fc.array(fc.oneof(fc.integer({ min: 0, max: 2 ** 40 }), anyStamp)), (steps) => {
      let clock = { ms: 0, c: 0 };
      for (const step of steps) {
        const next = typeof step === "number" ? nextStamp(clock, step) : witness(clock, step);
        const order = compareStamps(next, clock);
        expect(typeof step === "number" ? order > 0 : order >= 0 && compareStamps(next, step) >= 0).to.equal(true);
        clock = next;
      }
    });
  });

  it("encodes stamps so that texts sort as stamps do", () => {
    holds(fc.tuple(anyStamp, anyStamp), ([a, b]) => {
      expect(decodeStamp(encodeStamp(a))).to.deep.equal(a);
      const order = encodeStamp(a) < encodeStamp(b) ? -1 : encodeStamp(a) > encodeStamp(b) ? 1 : 0;
      expect(Math.sign(compareStamps(a, b))).to.equal(order);
    });
  });

  it("borrows the next millisecond when the counter is full", () =>
    expect(nextStamp({ ms: 5, c: 0xffff }, 5)).to.deep.equal({ ms: 6, c: 0 }));
});
