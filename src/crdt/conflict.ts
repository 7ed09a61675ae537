import { hash64, hex64 } from "./hash.ts";
import { isSameDot } from "./register.ts";
import type { Dot, Register } from "./register.ts";
import { seqIn } from "./version-vector.ts";

/** Whether the writer of `later` had seen `earlier`: happened-before (Lamport, CACM 21(7), 1978), exactly. */
export function hasSeen(later: Register, earlier: Dot): boolean {
  return later.o === earlier.o ? later.s >= earlier.s : seqIn(later.x, earlier.o) >= earlier.s;
}

/** Neither writer had seen the other's write, and they do not say the same: one of them loses something unknowingly. */
export function areInConflict(a: Register, b: Register): boolean {
  return a.text !== b.text && !isSameDot(a, b) && !hasSeen(a, b) && !hasSeen(b, a);
}

/** The same for the same two writes, whoever finds them and in whatever order. */
export function conflictId(a: Register, b: Register): string {
  const [first, second] = [`${a.o}:${a.s}`, `${b.o}:${b.s}`].toSorted();
  return hex64(hash64(`${a.key}\n${first}\n${second}`));
}
