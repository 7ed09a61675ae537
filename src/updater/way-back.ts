import type { Statement } from "#rollout/spec.ts";
import type { Desk } from "./desk.ts";
import { UpdateFailure } from "./failure.ts";
import type { Standing, Step } from "./journal.ts";
import type { UpdateWay } from "./way.ts";

/** What a step forward that fails goes back to, where the node stands as `now`. */
export function beforeStep({ wayBack }: Desk, step: Step, { target }: UpdateWay, now: Standing): Standing | undefined {
  if (step !== "activate") return wayBack;
  const { lasting, ...running } = now;
  // What is only tried becomes what lasts, in the place of what does now.
  if (now.id === target.id) return now.generation === undefined ? lasting : wayBack;
  // It waits for a boot already.
  return lasting?.id === target.id ? (wayBack ?? running) : now;
}

/**
 * What an update is taken back to, where the node stands as `now`; undefined: nothing of it is here, or was here before it, so the node stays
 * as it is.
 * @throws UpdateFailure when something of it may be here, and what ran before is not known
 */
export async function backFrom(
  { wayBack, journal: { held, brings } }: Desk,
  way: UpdateWay,
  now: Standing,
  { signedAt }: Statement,
): Promise<Standing | undefined> {
  const { target } = way;
  if (wayBack && (now.id === target.id || now.id === wayBack.id)) {
    if (wayBack.id === target.id) return undefined;
    // No generation holds what was only tried.
    return wayBack.lasting && !(await way.isThere(wayBack)) ? wayBack.lasting : wayBack;
  }
  if (now.id === target.id) throw new UpdateFailure("rollback", "what the node ran before this update is not known");
  // What was signed after all that held here never held itself.
  const last = held[brings];
  if (last === undefined || Date.parse(signedAt) > Date.parse(last)) {
    const { lasting, ...running } = now;
    return lasting?.id === target.id ? running : undefined;
  }
  const runs = now.version === "" ? now.id : now.version;
  throw new UpdateFailure(
    "rollback",
    `the node runs ${runs}, which came after this update: what it ran before is not known any more`,
  );
}
