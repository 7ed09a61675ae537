// “Convergent” (docs/replication.md): a controller that was restored or repaired serves after it has the state of another one.
import { encodePage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { raise, toWire, type WireVector } from "#crdt/version-vector.ts";
import type { Core } from "./replica-core.ts";
import type { JournalRecord } from "./replica-ports.ts";

/**
 * Ends the catching up of a restored or repaired controller, once it has the state of another controller or knows of no other one: merges
 * the registers salvaged behind a damage. The version vector may then cover lost transactions, which no controller in reach has. If a
 * controller brings such a transaction later, the digests differ, and both exchange the values.
 */
export async function endCatchUp(core: Core): Promise<void> {
  const { salvaged } = core.state;
  const merge: JournalRecord = { t: "apply", page: encodePage(salvaged), upto: vectorOf(salvaged) };
  await core.commits.commit([...(salvaged.length > 0 ? [merge] : []), { t: "meta", behind: false }], salvaged);
  core.options.log?.("info", "this controller has caught up", { salvaged: salvaged.length });
}

/** The version vector that covers these registers. */
export function vectorOf(registers: readonly Register[]): WireVector {
  const vector = new Map<string, number>();
  raise(
    vector,
    registers.map(({ o, s }) => [o, s] as const),
  );
  return toWire(vector);
}
