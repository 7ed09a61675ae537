import type { LwwMap } from "./lww-map.ts";
import type { Register } from "./register.ts";
import { dominates } from "./version-vector.ts";
import type { VersionVector } from "./version-vector.ts";

/** The most registers and bytes of a page. */
export interface PageLimits {
  readonly registers: number;
  readonly bytes: number;
}

export const pageLimits: PageLimits = { registers: 1000, bytes: 1024 * 1024 };

/**
 * The position between two pages of a delta. A pass sends the registers between `base` and `target`, by (origin, seq); `after` is the
 * dot of the last sent register. A further pass sends the writes made meanwhile, so the last page completes all that the sender then holds.
 */
export interface DeltaCursor {
  readonly base: VersionVector;
  readonly target: VersionVector;
  readonly after?: readonly [origin: string, seq: number];
}

export interface Delta {
  readonly registers: readonly Register[];
  /** Absent on the last page: a receiver of all pages then covers the sender's version vector as of that page. */
  readonly next?: DeltaCursor;
}

/** The cursor of a delta for a peer whose version vector is `seen`. */
export function startDelta(map: LwwMap, seen: VersionVector): DeltaCursor {
  return { base: seen, target: new Map(map.vector) };
}

/**
 * One page: whole transactions, in each pass sorted by (origin, seq), at most `limits` unless one transaction alone is larger. A receiver
 * raises its vector after the last page only: superseded registers are not sent, and the superseding ones may be on a later page.
 */
export function cutPage(map: LwwMap, cursor: DeltaCursor, limits = pageLimits): Delta {
  const registers: Register[] = [];
  let room: PageLimits = limits;
  for (let pass = cursor; ; pass = { base: pass.target, target: new Map(map.vector) }) {
    for (const origin of [...pass.target.keys()].toSorted()) {
      if (pass.after && origin < pass.after[0]) continue;
      const from = pass.after?.[0] === origin ? pass.after[1] : (pass.base.get(origin) ?? 0);
      for (const transaction of transactionsOf(map.since(origin, from, pass.target.get(origin) ?? 0))) {
        const bytes = transaction.reduce((sum, register) => sum + sizeOf(register), 0);
        if (registers.length > 0 && (transaction.length > room.registers || bytes > room.bytes)) {
          const last = registers.at(-1) as Register;
          const isOfThisPass = last.s > (pass.base.get(last.o) ?? 0);
          return {
            registers,
            next: { base: pass.base, target: pass.target, ...(isOfThisPass ? { after: [last.o, last.s] } : {}) },
          };
        }
        registers.push(...transaction);
        room = { registers: room.registers - transaction.length, bytes: room.bytes - bytes };
      }
    }
    if (dominates(pass.target, map.vector)) return { registers };
  }
}

function* transactionsOf(registers: Iterable<Register>): Iterable<readonly Register[]> {
  let transaction: Register[] = [];
  for (const register of registers) {
    if (transaction[0] && transaction[0].s !== register.s) {
      yield transaction;
      transaction = [];
    }
    transaction.push(register);
  }
  if (transaction.length > 0) yield transaction;
}

/** Splits registers into pages within the limits, without regard to transactions; returns at least one page. */
export function pagesOf(registers: readonly Register[], limits = pageLimits): readonly (readonly Register[])[] {
  const pages: Register[][] = [[]];
  let bytes = 0;
  for (const register of registers) {
    const page = pages.at(-1) as Register[];
    const size = sizeOf(register);
    if (page.length > 0 && (page.length >= limits.registers || bytes + size > limits.bytes)) {
      pages.push([register]);
      bytes = size;
    } else {
      page.push(register);
      bytes += size;
    }
  }
  return pages;
}

/** The approximate size on the wire, bytes. */
function sizeOf({ key, text }: Register): number {
  return key.length + (text?.length ?? 4) + 48;
}
