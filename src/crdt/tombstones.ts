import type { Register } from "./register.ts";
import { covers, dominates } from "./version-vector.ts";
import type { VersionVector } from "./version-vector.ts";

/**
 * The registers (tombstones, siblings) that replica R may forget: the causally stable ones (Baquero, Almeida, Shoker, “Pure
 * operation-based replicated data types”, 2017). Let `acks(m)` be the version vector that member m last reported to R as durable.
 * For each other member m:
 * 1. acks(m) covers the register, so every later write of m has seen it; and
 * 2. R covers acks(m), so m's earlier writes have reached R, and are ignored if they come again.
 * There is no time limit: a member that is away for weeks keeps the registers alive.
 */
export function collectable(
  registers: Iterable<Register>,
  own: VersionVector,
  acks: readonly (VersionVector | undefined)[],
): readonly Register[] {
  if (!acks.every((ack) => ack !== undefined && dominates(own, ack))) return [];
  return [...registers].filter(({ o, s }) => acks.every((ack) => ack !== undefined && covers(ack, o, s)));
}
