import { isHook, lookAtHooks } from "./hooks.ts";
import { hasEnded, type Row } from "./records.ts";
import { nameOf, reportOf, type RolloutView } from "./view.ts";

/** Why a rollout ended otherwise than it was asked to, and which nodes it left without their work, as they are now. */
export function reasonOf(view: RolloutView): string | undefined {
  const { progress, rows, generation } = view;
  if (progress?.generation !== generation) return undefined;
  const ids = hasEnded(progress.phase) ? progress.waves.flat() : [];
  const drained = ids.map((id) => whyDrained(view, id, rows.get(id)));
  const reasons = [progress.reason, ...drained].filter((reason) => reason !== undefined);
  return reasons.length > 0 ? reasons.join("; ") : undefined;
}

function whyDrained(view: RolloutView, id: string, row: Row | undefined): string | undefined {
  if (row?.generation !== view.generation || row.drained !== true || !isHook(view.spec.drain.after)) return undefined;
  const name = nameOf(view, id);
  const { next, failed } = lookAtHooks(view, id, row);
  if (next !== undefined) return `${name} is drained until the bastion lets work come back`;
  if (failed) return `${name} stays drained: ${failed.hook}: ${failed.message}`;
  const isThere = reportOf(view, id)?.present.id === view.target.id;
  return `${name} stays drained: ${isThere ? "it runs what failed" : "it has not said that it went back"}`;
}
