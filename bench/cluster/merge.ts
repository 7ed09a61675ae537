import { LwwMap } from "#crdt/lww-map.ts";
import { encodePage, PageReader } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { pageLimits } from "#crdt/delta.ts";
import { automerge, yjs } from "./peers.ts";
import { median, ratio, type Figure } from "./figures.ts";

const count = 100_000;
/** Automerge needs minutes to make two documents of 100,000 keys. Its rate falls as documents grow, so fewer keys favour Automerge. */
const countOfAutomerge = 20_000;
const keyOf = (index: number): string => `node/${index.toString(16).padStart(8, "0")}/label`;
const valueOf = (who: string, index: number): string => `${who}-${index}`;

/** Merging the state of another replica that wrote the same keys, from the bytes on the wire to a map one can read. */
export function benchMerge(): readonly Figure[] {
  const ours = median(5, mergeRegisters);
  const ofYjs = median(3, mergeYjs);
  const ofAutomerge = mergeAutomerge();
  const rate = (milliseconds: number, of = count): string => `${(of / milliseconds / 1000).toFixed(3)} M registers/s`;
  return [
    { name: `merge from the wire, ${count} conflicting registers`, value: rate(ours), goal: "≥ 0.3 M registers/s" },
    { name: "  against Yjs", value: ratio(ofYjs / ours), goal: "≥ 1×", note: rate(ofYjs) },
    {
      name: "  against Automerge",
      value: ratio(ofAutomerge / countOfAutomerge / (ours / count)),
      goal: "≥ 30×",
      note: `${rate(ofAutomerge, countOfAutomerge)} at ${countOfAutomerge}`,
    },
    memoryOfRegisters(),
  ];
}

function registersOf(origin: string, ms: number): Register[] {
  const x = { origins: [], seqs: [] };
  return Array.from({ length: count }, (_, index) => ({
    key: keyOf(index),
    text: JSON.stringify(valueOf(origin, index)),
    ms,
    c: index & 0xffff,
    o: origin,
    s: index + 1,
    x,
  }));
}

function mergeRegisters(): number {
  const map = new LwwMap(() => "lww");
  map.merge(registersOf("a#1", 1_790_000_000_000), [["a#1", count]]);
  const theirs = registersOf("b#1", 1_790_000_000_001);
  const wire: string[] = [];
  for (let from = 0; from < count; from += pageLimits.registers)
    wire.push(JSON.stringify(encodePage(theirs.slice(from, from + pageLimits.registers))));
  const reader = new PageReader();
  const began = performance.now();
  for (const [index, text] of wire.entries()) {
    const end = Math.min(count, (index + 1) * pageLimits.registers);
    map.merge(reader.read(JSON.parse(text)), [["b#1", end]]);
  }
  const took = performance.now() - began;
  if (map.get(keyOf(7))?.o !== "b#1") throw new Error("the merge did not take the later writes");
  return took;
}

function mergeYjs(): number {
  const { Doc, encodeStateAsUpdate, applyUpdate } = yjs();
  const make = (who: string, clientID: number) => {
    const doc = new Doc();
    doc.clientID = clientID;
    const map = doc.getMap("state");
    doc.transact(() => {
      for (let index = 0; index < count; index++) map.set(keyOf(index), valueOf(who, index));
    });
    return doc;
  };
  const mine = make("a", 1);
  const update = encodeStateAsUpdate(make("b", 2));
  const began = performance.now();
  applyUpdate(mine, update);
  const took = performance.now() - began;
  if (mine.getMap("state").get(keyOf(7)) !== valueOf("b", 7)) throw new Error("Yjs did not take the later writes");
  return took;
}

function mergeAutomerge(): number {
  const { init, change, save, load, merge } = automerge();
  const make = (who: string) =>
    change(init(), (draft) => {
      for (let index = 0; index < countOfAutomerge; index++) draft[keyOf(index)] = valueOf(who, index);
    });
  const mine = make("a");
  const bytes = save(make("b"));
  const began = performance.now();
  const merged = merge(mine, load(bytes));
  const took = performance.now() - began;
  if (Object.keys(merged).length !== countOfAutomerge) throw new Error("Automerge lost keys");
  return took;
}

/** Registers as a cluster has them: UUIDs in keys, values of 110 bytes, one context for all. */
function memoryOfRegisters(): Figure {
  const reader = new PageReader();
  const before = heapInUse();
  const map = new LwwMap(() => "lww");
  let upto = 0;
  for (const text of pagesOfClusters()) {
    upto += pageLimits.registers;
    map.merge(reader.read(JSON.parse(text)), [["a#1", upto]]);
  }
  const after = heapInUse();
  if (map.size !== count) throw new Error("registers are missing");
  return {
    name: "memory of a register (UUID in the key, value of 110 bytes)",
    value: `${Math.round((after - before) / count)} bytes`,
    goal: "≤ 500 bytes",
  };
}

function* pagesOfClusters(): Iterable<string> {
  const x = { origins: ["b#1"], seqs: [5] };
  for (let from = 0; from < count; from += pageLimits.registers) {
    const registers = Array.from({ length: pageLimits.registers }, (_, index) => ({
      key: `node/${crypto.randomUUID()}/reg`,
      text: JSON.stringify({ hostname: `host-${from + index}`, text: "v".repeat(78) }),
      ms: 1_790_000_000_000 + from,
      c: index,
      o: "a#1",
      s: from + index + 1,
      x,
    }));
    yield JSON.stringify(encodePage(registers));
  }
}

function heapInUse(): number {
  if (!globalThis.gc) throw new Error("run with --expose-gc");
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
