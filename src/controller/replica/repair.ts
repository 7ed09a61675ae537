// Promise of docs/replication.md: Convergent.
import { compareRegisters } from "#crdt/merge-kind.ts";
import { isSameDot, type Register } from "#crdt/register.ts";
import { covers } from "#crdt/version-vector.ts";
import type { Core } from "./core.ts";

/**
 * The registers of a peer that are merged when two controllers hold different values under one version vector (one lost some, or a clone
 * wrote). Both keep all registers, and of two contents under one number the greater, so that all controllers come to the same.
 */
export function registersToRepair({ state, options }: Core, registers: readonly Register[]): readonly Register[] {
  const { map } = state;
  return registers.filter((register) => {
    const { key, o, s, text } = register;
    if (!covers(map.vector, o, s)) return false;
    const present = map.get(key);
    if (!present || !isSameDot(present, register)) return true;
    const order = compareRegisters(options.mergeKindOf(key), register, present);
    return order > 0 || (order === 0 && JSON.stringify(text) > JSON.stringify(present.text));
  });
}
