import { hash64, hex64 } from "./hash.ts";
import { isSameDot } from "./register.ts";
import type { Dot, Register } from "./register.ts";
import { seqIn } from "./version-vector.ts";

/** Whether the writer of `later` had seen `earlier`: happened-before (Lamport, CACM 21(7), 1978), exactly. */
export function hasSeen(later: Register, earlier: Dot): boolean {
  return later.o === earlier.o ? later.s >= earlier.s : seqIn(later.x, earlier.o) >= earlier.s;
}

/** Whether two writes are concurrent and their values differ: one value would be lost silently. */
export function areInConflict(a: Register, b: Register): boolean {
  return a.text !== b.text && !isSameDot(a, b) && !hasSeen(a, b) && !hasSeen(b, a);
}

/** The id of a set of writes of a key; their order does not count. */
export function conflictId(key: string, writes: readonly Dot[]): string {
  return hex64(hash64([key, ...writes.map(({ o, s }) => `${o}:${s}`).toSorted()].join("\n")));
}

/** The id of one lost write of a key, by which an operator acknowledges it. */
export function lossId(key: string, lost: Dot): string {
  return conflictId(key, [lost]);
}
