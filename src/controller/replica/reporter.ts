import type { Core } from "./core.ts";
import type { Json } from "./replica.ts";
import type { Writer } from "./writer.ts";

const batch = 50;

/**
 * Writes conflicts that were found here as registers `conflict/ID`, so that every controller can show them. Whoever finds
 * one waits a little at random: mostly another controller's record arrives first, and nothing is to do.
 */
export function startReporter(core: Core, writer: Writer): void {
  const { state, alarms, tuning } = core;
  let isWriting = false;
  core.every(tuning.reportEvery, () => {
    for (const id of state.conflicts.keys()) if (state.map.get(`conflict/${id}`)) state.conflicts.delete(id);
    const standing = [...state.map.withPrefix("conflict/")].filter(({ text }) => text !== null).length;
    const isCapped = standing >= tuning.conflictCap;
    alarms.set(isCapped, "CONFLICTS_CAPPED", "conflicts", `${standing} conflicts stand; further ones are kept back`);
    if (isWriting || isCapped || state.conflicts.size === 0 || writer.refusal() !== undefined) return;
    const records = [...state.conflicts.values()].slice(0, batch);
    isWriting = true;
    const changes = records.map((record) => ({
      key: `conflict/${record.id}`,
      value: record as unknown as Json,
      ifMatch: null,
    }));
    writer.write(changes).then(
      () => (isWriting = false),
      () => (isWriting = false),
    );
  });
}
