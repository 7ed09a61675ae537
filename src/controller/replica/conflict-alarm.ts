// “Conflicts are listed” (docs/replication.md): an alarm says when some could not be kept.
import type { Core } from "./replica-core.ts";

/** Raises CONFLICTS_CAPPED while the state has no room for further conflicts, or has just turned some away. */
export function startConflictAlarm(core: Core): void {
  const { siblings } = core.state.map;
  let turnedAway = 0;
  core.every(core.tuning.conflictsEvery, () => {
    const isCapped = siblings.isFull || siblings.turnedAway > turnedAway;
    turnedAway = siblings.turnedAway;
    const text = `${siblings.count} writes stand in conflicts, and ${turnedAway} more could not be kept`;
    core.alarms.set(isCapped, "CONFLICTS_CAPPED", "conflicts", text);
  });
}
