import { to } from "./advance.ts";
import { change, wait, type Decision } from "./decision.ts";
import { broughtBefore, takeUp } from "./earlier.ts";
import { whyNotWell } from "./hooks.ts";
import type { Progress, Row } from "./records.ts";
import { mayRunTarget, unavailableBack, whyNotStart, whyUnconfirmed, whyUntaken } from "./starts.ts";
import { isActive, isWished, nameOf, reportOf, type RolloutView } from "./view.ts";

/** Takes nodes back, in the reverse of the order in which they were started, as many at a time as may be down. */
export function rollBack(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const taken = takeUp(view, progress);
  if (taken) return taken;
  const open = undoable(view, progress, rows);
  const busy = [...rows].filter(([, row]) => isActive(row));
  if (open.length === 0 && busy.length === 0) return undone(view, progress, rows);
  const unavailable = unavailableBack(view, rows);
  const starts = new Map<string, Row>();
  const { type, maxUnavailable } = view.spec.strategy;
  const limit = type === "one-at-a-time" ? 1 : maxUnavailable;
  for (const [id, row] of open) {
    if (busy.length + starts.size >= limit) break;
    const reason = whyNotStart(view, id, { rows, starts, unavailable, isBack: true });
    if (reason !== undefined) return starts.size > 0 ? { rows: starts } : wait(progress, [reason]);
    const { untouched: _, ...touched } = row;
    starts.set(id, to(view, touched, "rolling_back"));
    unavailable.add(id);
  }
  if (starts.size > 0) return { rows: starts };
  return wait(
    progress,
    busy.flatMap(([id, { phase }]) =>
      phase === "preflight" ? whyUnconfirmed(view, id) : (whyUntaken(view, id) ?? []),
    ),
  );
}

/** The nodes that have something to be taken back and may be, the last one that was started first. */
export function undoable(
  view: RolloutView,
  progress: Progress,
  rows: ReadonlyMap<string, Row>,
): readonly (readonly [string, Row])[] {
  return undoableAtAll(view, progress, rows).filter(([id]) => isApproved(view, id));
}

/** One that is not approved obeys nobody here: the others do not wait for it. */
function isApproved({ nodes }: RolloutView, id: string): boolean {
  return nodes.get(id)?.isApproved === true;
}

function undoableAtAll(
  view: RolloutView,
  { started, since }: Progress,
  rows: ReadonlyMap<string, Row>,
): readonly (readonly [string, Row])[] {
  const isUndoable = (id: string, row: Row): boolean => {
    if (!view.nodes.has(id)) return false;
    if (row.untouched === true || row.phase === "cancelled") return isFromBefore(view, id, row);
    if (row.phase === "succeeded") return true;
    // One that could not be taken back is tried again when somebody asks again.
    const isTried = row.failure?.kind === "rollback" && row.since >= since;
    return row.phase === "failed" && !isTried && mayRunTarget(view, id, row);
  };
  const place = (id: string): number => started.indexOf(id);
  return [...rows].filter(([id, row]) => isUndoable(id, row)).toSorted(([a], [b]) => place(b) - place(a));
}

/** A generation before this one brought the target, so the node has a way back from this very update. */
function isFromBefore(view: RolloutView, id: string, { phase }: Row): boolean {
  const { previous, present } = reportOf(view, id) ?? {};
  return previous !== undefined && (phase === "succeeded" || present?.id === view.target.id);
}

function undone(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const ill = whyNotWell(view, rows);
  if (ill.length > 0) return wait(progress, ill);
  const refused = new Set(undoableAtAll(view, progress, rows).map(([id]) => id));
  const isLeft = (id: string, row: Row): boolean =>
    view.nodes.has(id) && row.phase === "failed" && (row.failure?.kind === "rollback" || mayRunTarget(view, id, row));
  const left = [...rows].filter(([id, row]) => refused.has(id) || isLeft(id, row));
  const asked = isWished(view, "rollback") ? view.wishes.rollback?.at : undefined;
  const done = { ...progress, undone: asked ?? "by itself" };
  if (left.length === 0) return change(done, { phase: "rolled_back" }, view);
  const names = left.map(([id]) => `${nameOf(view, id)}${isApproved(view, id) ? "" : ", which is not approved"}`);
  return change(done, { phase: "failed", reason: `not taken back: ${names.join("; ")}` }, view);
}

/**
 * No node was begun, and none has anything of an earlier generation, so there is nothing to take back. What a former owner began a later one
 * may not know, unless no node was chosen.
 */
export function isUnbegun(view: RolloutView, progress: Progress): boolean {
  const { epoch, started, waves } = progress;
  if (epoch === 1 ? started.length > 0 : waves.length > 0) return false;
  const rows = new Map([...view.rows].filter(([, { generation }]) => generation === view.generation));
  return undoableAtAll(view, progress, rows).length + broughtBefore(view).length === 0;
}

/** A rollback that somebody asked for since the last one ended. */
export function isUndoAsked(view: RolloutView, progress: Progress): boolean {
  return isWished(view, "rollback") && view.wishes.rollback?.at !== progress.undone;
}
