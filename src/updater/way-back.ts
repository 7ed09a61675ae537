import type { Statement } from "#rollout/spec.ts";
import type { Desk } from "./desk.ts";
import { UpdateFailure } from "./failure.ts";
import type { Present, Step } from "./journal.ts";
import type { UpdateWay } from "./way.ts";

/** What a step forward that fails goes back to, where the node runs `now`. */
export async function beforeStep(desk: Desk, step: Step, way: UpdateWay, now: Present): Promise<Present | undefined> {
  if (step !== "activate") return desk.wayBack;
  if (now.id !== way.target.id) return now;
  // What is only tried becomes what lasts, in the place of what does now.
  return now.generation === undefined ? way.lasting() : desk.wayBack;
}

/**
 * What an update is taken back to, where the node runs `now`; undefined: nothing of it is here, so the node stays as it is.
 * @throws UpdateFailure when something of it may be here, and what ran before is not known
 */
export function backFrom(
  { wayBack, journal: { held, brings } }: Desk,
  { target }: UpdateWay,
  now: Present,
  { signedAt }: Statement,
): Present | undefined {
  if (wayBack && (now.id === target.id || now.id === wayBack.id)) return wayBack;
  if (now.id === target.id) throw new UpdateFailure("rollback", "what the node ran before this update is not known");
  // What was signed after all that held here never held itself.
  const last = held[brings];
  if (last === undefined || Date.parse(signedAt) > Date.parse(last)) return undefined;
  const runs = now.version === "" ? now.id : now.version;
  throw new UpdateFailure(
    "rollback",
    `the node runs ${runs}, which came after this update: what it ran before is not known any more`,
  );
}
