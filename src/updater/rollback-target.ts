import type { UpdateStatement } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import type { JournalFile } from "./journal.ts";
import type { BootState, Step, UpdateStrategy } from "./strategy.ts";

/** The state to which a failed step forward goes back; `now` is the present one. */
export function beforeStep(
  { rollbackTarget }: JournalFile,
  step: Step,
  { target }: UpdateStrategy,
  now: BootState,
): BootState | undefined {
  if (step !== "activate") return rollbackTarget;
  const { lasting, ...running } = now;
  // The activation makes a trial last, in the place of the boot default.
  if (now.id === target.id) return now.generation === undefined ? lasting : rollbackTarget;
  // The target waits for a boot already.
  return lasting?.id === target.id ? (rollbackTarget ?? running) : now;
}

/**
 * The state to which an update is taken back; `now` is the present one. Undefined, so that nothing changes, if the node
 * has nothing of the update, or had its target before.
 * @throws UpdateFailure when something of it may be here, and the version before it is unknown
 */
export async function rollbackTargetOf(
  { rollbackTarget, data: { held, brings } }: JournalFile,
  strategy: UpdateStrategy,
  now: BootState,
  { signedAt }: UpdateStatement,
): Promise<BootState | undefined> {
  const { target } = strategy;
  if (rollbackTarget && (now.id === target.id || now.id === rollbackTarget.id)) {
    if (rollbackTarget.id === target.id) return undefined;
    // No generation keeps a trial from garbage collection.
    return rollbackTarget.lasting && !(await strategy.isThere(rollbackTarget))
      ? rollbackTarget.lasting
      : rollbackTarget;
  }
  if (now.id === target.id) throw new UpdateFailure("rollback", "the version before this update is not known");
  // A statement signed after the last one that held here has not held itself, so the node has nothing of it.
  const last = held[brings];
  if (last === undefined || Date.parse(signedAt) > Date.parse(last)) {
    const { lasting, ...running } = now;
    return lasting?.id === target.id ? running : undefined;
  }
  const runs = now.version === "" ? now.id : now.version;
  throw new UpdateFailure(
    "rollback",
    `the node runs ${runs}, which came after this update: the version before it is not known any more`,
  );
}
