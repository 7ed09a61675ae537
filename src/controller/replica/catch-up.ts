// Promise of docs/replication.md: Convergent.
import { encodePage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { raise, toWire, type WireVector } from "#crdt/version-vector.ts";
import type { Core } from "./core.ts";
import type { JournalRecord } from "./replica-ports.ts";

/**
 * Ends the catching up of a controller that was put back or mended: it has all that another one had, or knows of no other one. What was
 * found behind a damage is merged now; what it lost is either here again by this, or with nobody that could be asked, so the
 * version vector may pass over it. Should another one come back with it later, their digests differ, and they exchange it.
 */
export function endCatchUp(core: Core, onDone: () => void): void {
  const { salvaged } = core.state;
  const merge: JournalRecord = { t: "apply", page: encodePage(salvaged), upto: claimOf(salvaged) };
  core.commit([...(salvaged.length > 0 ? [merge] : []), { t: "meta", behind: false }], salvaged, () => {
    core.options.log?.("info", "this controller has caught up", { salvaged: salvaged.length });
    onDone();
  });
}

/** The version vector that covers these registers. */
export function claimOf(registers: readonly Register[]): WireVector {
  const vector = new Map<string, number>();
  raise(
    vector,
    registers.map(({ o, s }) => [o, s] as const),
  );
  return toWire(vector);
}
