// “Conflicts are listed” (docs/replication.md): an alarm says when some could not be kept; settled records of earlier versions go.
import { inBackground } from "./commit-queue.ts";
import { formerConflicts } from "./former-conflicts.ts";
import type { Core } from "./replica-core.ts";
import type { Writer } from "./writer.ts";

const batch = 50;

/**
 * At intervals raises an alarm if some conflicts could not be kept. Also deletes records of earlier versions (which knew no siblings)
 * that name no open conflict.
 */
export function startConflictCleanup(core: Core, writer: Writer): void {
  const { state, alarms, tuning } = core;
  const { siblings } = state.map;
  let isWriting = false;
  let turnedAway = 0;
  core.every(tuning.conflictsEvery, () => {
    const isCapped = siblings.isFull || siblings.turnedAway > turnedAway;
    turnedAway = siblings.turnedAway;
    const text = `${siblings.count} writes stand in conflicts, and ${turnedAway} more could not be kept`;
    alarms.set(isCapped, "CONFLICTS_CAPPED", "conflicts", text);
    const settled = formerConflicts(state.map, state.rules.isContested).settled.slice(0, batch);
    if (isWriting || settled.length === 0 || writer.refusal() !== undefined) return;
    isWriting = true;
    const deletion = writer.write(settled.map((key) => ({ key, value: null })));
    inBackground(deletion.finally(() => (isWriting = false)));
  });
}
