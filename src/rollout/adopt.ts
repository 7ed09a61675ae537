import type { Decision } from "./decision.ts";
import { isDrained } from "./hooks.ts";
import type { Progress, Row } from "./records.ts";
import { isAtRest, type RolloutView } from "./view.ts";

/** There is a newer manifest than the one that is known here: its records are not to be touched. */
export function isBehind({ generation, progress, rows }: RolloutView): boolean {
  return (progress?.generation ?? 0) > generation || [...rows.values()].some((row) => row.generation > generation);
}

/**
 * A new owner goes on where the former one was, as far as it is known here. What is known may be old, and the former one may go on for a
 * while: so each node is asked first, and nothing is ordered by what its row said (preflight). Undefined: all of it is this owner's already.
 */
export function adopt(view: RolloutView, progress: Progress): Decision | undefined {
  const { epoch, owner } = view.owner;
  const rows = new Map<string, Row>();
  for (const id of new Set([...progress.waves.flat(), ...view.rows.keys()])) {
    const row = view.rows.get(id);
    const isMeant = row?.generation === view.generation || progress.waves.some((wave) => wave.includes(id));
    if (isMeant && !isOwn(view, id, row)) rows.set(id, adopted(view, id, row));
  }
  if (rows.size === 0 && progress.epoch === epoch && progress.owner === owner) return undefined;
  const strays = [...rows.keys()].filter((id) => !progress.waves.some((wave) => wave.includes(id)));
  return { progress: { ...progress, epoch, owner, waves: [...progress.waves, ...strays.map((id) => [id])] }, rows };
}

/** This owner wrote it, and the node knows no later one: another of the same epoch may have written over that. */
function isOwn(view: RolloutView, id: string, row: Row | undefined): boolean {
  const { epoch, owner } = view.owner;
  return (
    row?.generation === view.generation && row.epoch === epoch && row.owner === owner && row.seq >= lastSeqOf(view, id)
  );
}

function adopted(view: RolloutView, id: string, row: Row | undefined): Row {
  if (row?.generation !== view.generation) return firstRow(view, id, "preflight");
  const { epoch, owner } = view.owner;
  const seq = Math.max(row.seq, lastSeqOf(view, id)) + 1;
  const phase = isAtRest(row) ? row.phase : "preflight";
  const since = phase === "preflight" ? view.now : row.since;
  return { ...row, epoch, owner, seq, phase, since, ...(row.phase === "draining" ? { drained: true } : {}) };
}

/** A node's first row of a generation; above all that it may have been told before. What the one before left undone is still to be done. */
export function firstRow(view: RolloutView, id: string, phase: "pending" | "preflight"): Row {
  const { owner, rows, generation, now } = view;
  const before = rows.get(id);
  const seq = Math.max(before?.seq ?? 0, lastSeqOf(view, id)) + 1;
  return {
    epoch: owner.epoch,
    owner: owner.owner,
    generation,
    seq,
    phase,
    since: now,
    ...(mayBeDrained(view, id, before) ? { drained: true } : {}),
    ...(isUnproven(view, id, before) ? { unproven: true } : {}),
  };
}

/** It was, or a former owner may have drained it since what is known here. */
function mayBeDrained(view: RolloutView, id: string, before: Row | undefined): boolean {
  const { epoch, owner } = view.owner;
  if (before && isDrained(view, id, before)) return true;
  const isOwn = before?.epoch === epoch && before.owner === owner;
  return view.spec.drain.enabled && epoch > 1 && view.generation > 1 && !isOwn;
}

/** What a former owner knew of a node that this update brought somewhere may not be known here. */
function isUnproven({ owner, reports }: RolloutView, id: string, before: Row | undefined): boolean {
  if (before) return before.phase !== "succeeded";
  return owner.epoch > 1 && reports.get(id)?.previous !== undefined;
}

/** The last order of this owner that the node knows. */
function lastSeqOf({ name, owner, reports }: RolloutView, id: string): number {
  const fence = reports.get(id)?.fence;
  const isOurs = fence?.name === name && fence.epoch === owner.epoch && fence.owner === owner.owner;
  return isOurs ? fence.seq : 0;
}
