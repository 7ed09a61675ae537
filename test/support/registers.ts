import fc from "fast-check";
import { LwwMap } from "#crdt/lww-map.ts";
import type { Merged } from "#crdt/lww-map.ts";
import { nextStamp, witness, zero } from "#crdt/hlc.ts";
import type { Stamp } from "#crdt/hlc.ts";
import type { Register } from "#crdt/register.ts";
import { causalContextOf, toWire } from "#crdt/version-vector.ts";
import { mergeKindOf } from "../sim/kinds.ts";

/** A key of each kind and a few plain ones: few enough that writes meet. */
const testKeys = ["a", "b", "c", "approval/n", "owner/u", "grow/g", "conflict/x"] as const;

const anyValue = fc.oneof(
  fc.constant(null),
  fc.integer({ min: 0, max: 9 }).map(String),
  fc
    .record({ epoch: fc.integer({ min: 0, max: 3 }), state: fc.constantFrom("pending", "approved", "rejected") })
    .map((value) => JSON.stringify(value)),
  fc.constant("{broken"),
);

/** A transaction with its true context, made by random writes and deliveries between a few writers. */
export interface Transaction {
  readonly registers: readonly Register[];
  readonly origin: string;
  readonly seq: number;
}

export type Act =
  | { readonly t: "write"; readonly at: number; readonly changes: readonly (readonly [string, string | null])[] }
  | { readonly t: "deliver"; readonly from: number; readonly to: number };

export const writers = 3;
const place = fc.integer({ min: 0, max: writers - 1 });

export const anyActs: fc.Arbitrary<readonly Act[]> = fc.array(
  fc.oneof(
    fc.record({
      t: fc.constant("write" as const),
      at: place,
      changes: fc.uniqueArray(fc.tuple(fc.constantFrom(...testKeys), anyValue), {
        minLength: 1,
        maxLength: 3,
        selector: ([key]) => key,
      }),
    }),
    fc.record({ t: fc.constant("deliver" as const), from: place, to: place }),
  ),
  { maxLength: 24 },
);

/** A writer: a map, a clock that only its stamps move, and all transactions that it wrote or received. */
export class Writer {
  readonly map = new LwwMap(mergeKindOf);
  readonly origin: string;
  readonly known: Transaction[] = [];
  #clock: Stamp = zero;
  #seq = 0;

  constructor(origin: string) {
    this.origin = origin;
  }

  write(changes: readonly (readonly [string, string | null])[], wall = 1): Transaction {
    this.#clock = nextStamp(this.#clock, wall);
    const x = causalContextOf(this.map.vector, this.origin);
    const seq = ++this.#seq;
    const registers = changes.map(([key, text]): Register => ({
      key,
      text,
      ...this.#clock,
      o: this.origin,
      s: seq,
      x,
    }));
    const transaction = { registers, origin: this.origin, seq };
    this.take([transaction]);
    return transaction;
  }

  /** Merges transactions as one page. */
  take(transactions: readonly Transaction[]): Merged {
    const upto = transactions.map(({ origin, seq }) => [origin, seq] as const);
    const merged = this.map.merge(
      transactions.flatMap(({ registers }) => registers),
      upto,
    );
    for (const { registers } of transactions)
      for (const register of registers) this.#clock = witness(this.#clock, register);
    this.known.push(...transactions);
    return merged;
  }

  get clock(): Stamp {
    return this.#clock;
  }

  /** The siblings of all keys, as `key origin seq`. */
  lost(): readonly string[] {
    return Array.from(this.map.siblings.all(), ({ key, o, s }) => `${key} ${o} ${s}`).toSorted();
  }

  /** The registers that count, in a comparable form. */
  view(): unknown {
    return [
      [...this.map.withPrefix("")],
      new Map(toWire(this.map.vector).toSorted(([a], [b]) => (a < b ? -1 : 1))),
      this.map.digest.total(),
      this.lost(),
    ];
  }
}

/** Plays acts: a delivery brings all transactions of its sender. Returns the writers, and all transactions in the order of their writes. */
export function play(acts: readonly Act[]): {
  readonly all: readonly Transaction[];
  readonly writers: readonly Writer[];
} {
  const cast = Array.from({ length: writers }, (_, index) => new Writer(`w${index}#1`));
  const all: Transaction[] = [];
  for (const act of acts) {
    if (act.t === "write") all.push((cast[act.at] as Writer).write(act.changes));
    else (cast[act.to] as Writer).take((cast[act.from] as Writer).known.slice());
  }
  return { all, writers: cast };
}
