// “Convergent” (docs/replication.md): two controllers that hold different values for the same transactions come to the same ones.
import { compareRegisters } from "#crdt/merge-kind.ts";
import { isSameDot, type Register } from "#crdt/register.ts";
import { covers } from "#crdt/version-vector.ts";
import type { Core } from "./replica-core.ts";
import type { Writer } from "./writer.ts";

/**
 * The registers of a peer to merge when two controllers hold different values under one version vector (one lost some, or a clone
 * wrote). Both keep all registers, and of two contents under one dot the greater, so all controllers converge.
 */
export function registersToRepair({ state, generation }: Core, registers: readonly Register[]): readonly Register[] {
  const { map, rules } = state;
  return registers.filter((register) => {
    const { key, o, s, text } = register;
    if (!covers(map.vector, o, s)) return false;
    const present = map.get(key);
    if (!present) return !generation.wrote(o);
    if (!isSameDot(present, register)) return true;
    const order = compareRegisters(rules.mergeKindOf(key), register, present);
    return order > 0 || (order === 0 && JSON.stringify(text) > JSON.stringify(present.text));
  });
}

/**
 * Deletes again the values of a peer that lost their deletion, which all others have forgotten. Only the process that wrote such a value
 * knows that it was deleted.
 */
export function deleteAgain({ state, generation }: Core, writer: Writer, registers: readonly Register[]): void {
  const back = registers.filter(({ key, text, o }) => text !== null && generation.wrote(o) && !state.map.get(key));
  if (back.length === 0 || writer.refusal() !== undefined) return;
  writer.rewrite(
    back.map((each) => ({ ...each, text: null })),
    () => undefined,
    () => undefined,
  );
}
