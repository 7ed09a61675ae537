import type { Register } from "./register.ts";
import { covers, dominates } from "./version-vector.ts";
import type { VersionVector } from "./version-vector.ts";

/**
 * The tombstones, or siblings with the standing value, that replica R may forget: the causally stable ones (Baquero, Almeida, Shoker, “Pure
 * operation-based replicated data types”, 2017). For each other member m, with `acks(m)` the version vector it last
 * told R that it holds durably:
 * 1. acks(m) covers it, so m will never write unknowingly of it; and
 * 2. R covers acks(m), so m's writes before it knew of it have reached R, and are ignored if they come again.
 * There is no time limit: a member that is away for weeks keeps them alive.
 */
export function collectable(
  registers: Iterable<Register>,
  own: VersionVector,
  acks: readonly (VersionVector | undefined)[],
): readonly Register[] {
  if (!acks.every((ack) => ack !== undefined && dominates(own, ack))) return [];
  return [...registers].filter(({ o, s }) => acks.every((ack) => ack !== undefined && covers(ack, o, s)));
}
