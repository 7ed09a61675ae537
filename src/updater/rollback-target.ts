import type { UpdateStatement } from "#rollout/spec.ts";
import { UpdateFailure } from "./failure.ts";
import type { UpdaterJournal } from "./journal.ts";
import type { BootState, UpdateStep, UpdateStrategy } from "./strategy.ts";

/** The state to which a failed preparation or activation goes back, undefined for none; `now`: the present state. */
export function beforeStep(
  { rollbackTarget }: UpdaterJournal,
  step: UpdateStep,
  { target }: UpdateStrategy,
  now: BootState,
): BootState | undefined {
  if (step !== "activate") return rollbackTarget;
  const { lasting, ...running } = now;
  // The target runs on trial (no generation): the activation makes it the boot default in place of `lasting`.
  if (now.id === target.id) return now.generation === undefined ? lasting : rollbackTarget;
  // The target is the boot default already and waits for a boot.
  return lasting?.id === target.id ? (rollbackTarget ?? running) : now;
}

/**
 * The state to which a rollback of the update takes the node; `now`: the present state. Undefined if nothing has to change:
 * the node has nothing of the update, or had its target before.
 * @throws UpdateFailure if the node may have something of the update, but the version before it is unknown
 */
export async function rollbackTargetOf(
  { rollbackTarget, data: { held, brings } }: UpdaterJournal,
  strategy: UpdateStrategy,
  now: BootState,
  { signedAt }: UpdateStatement,
): Promise<BootState | undefined> {
  const { target } = strategy;
  if (rollbackTarget && (now.id === target.id || now.id === rollbackTarget.id)) {
    if (rollbackTarget.id === target.id) return undefined;
    // A trial has no generation that protects it from the garbage collector.
    return rollbackTarget.lasting && !(await strategy.isStored(rollbackTarget))
      ? rollbackTarget.lasting
      : rollbackTarget;
  }
  if (now.id === target.id) throw new UpdateFailure("rollback", "the version before this update is not known");
  // A statement that was signed after the last one that held here has never held itself, so the node has nothing of it.
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
