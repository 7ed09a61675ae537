import { attendedBy, isDrained, isHook, isStuck, lookAtHooks } from "./hooks.ts";
import { hasEnded, type Row } from "./records.ts";
import { isAtRest, nameOf, reportOf, type RolloutView } from "./view.ts";
import { illnessOf } from "./well.ts";

/** Why a rollout ended otherwise than it was asked to, and which nodes it left without their work, as they are now. */
export function reasonOf(view: RolloutView): string | undefined {
  const { progress, rows, generation } = view;
  if (progress?.generation !== generation) return undefined;
  const drained = hasEnded(progress.phase) ? [...rows].flatMap(([id, row]) => whyDrained(view, id, row) ?? []) : [];
  const reasons = [progress.reason, ...drained].filter((reason) => reason !== undefined);
  return reasons.length > 0 ? reasons.join("; ") : undefined;
}

function whyDrained(view: RolloutView, id: string, row: Row): string | undefined {
  if (!isAtRest(row) || !isDrained(view, id, row) || !isHook(view.spec.drain.after)) return undefined;
  const name = nameOf(view, id);
  if (row.generation !== view.generation)
    return view.nodes.has(id) ? `${name} stays drained, since generation ${row.generation}` : undefined;
  const { next, held, failed } = lookAtHooks(view, id, row);
  if (failed) return `${name} stays drained: ${failed.hook}: ${failed.message}`;
  if (next !== undefined) return `${name} is drained until the bastion lets work come back (${attendedBy(view)})`;
  if (held !== undefined) return `${name} stays drained until it is well: it ${illnessOf(view, id)}`;
  return `${name} stays drained: ${whyLeft(view, id, row)}`;
}

function whyLeft(view: RolloutView, id: string, row: Row): string {
  if (reportOf(view, id)?.present.id === view.target.id) return "it runs what failed";
  return isStuck(view, id, row) ? "it could not go back" : "it has not said that it went back";
}
