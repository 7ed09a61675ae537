import { adopt, firstRow, isBehind } from "./adopt.ts";
import { advance, fail, isLate, to } from "./advance.ts";
import { change, cut, nothing, wait, type Decision } from "./decision.ts";
import { broughtBefore } from "./earlier.ts";
import { whyAsked, whyNotWell } from "./hooks.ts";
import type { Progress, Row } from "./records.ts";
import { isUndoAsked, rollBack, undoable } from "./roll-back.ts";
import { selectNodes, wavesOf } from "./select.ts";
import { startMore } from "./start-more.ts";
import { whyNotStartAny, whyUnconfirmed, whyUntaken } from "./starts.ts";
import { isActive, isGoingBack, isLeftOut, isOpen, isWished, nameOf, otherOwnerOf, type RolloutView } from "./view.ts";

/**
 * The next records of a rollout, from all that is known: a pure function, called again when they are durable and when something else
 * changed. Nodes act on rows, so whatever is done was written before. Only the owner gets a decision.
 */
export function decide(view: RolloutView): Decision {
  return cut(nextOf(view));
}

function nextOf(view: RolloutView): Decision {
  const { owner, self, progress, generation } = view;
  if (owner.owner !== self || isBehind(view)) return nothing;
  if (progress?.generation !== generation) return { progress: fresh(view), rows: new Map() };
  const adopted = adopt(view, progress);
  if (adopted) return adopted;
  const rows = targetsOf(view, progress);
  if (progress.phase === "pending" || progress.phase === "ready") return beforehand(view, progress, rows);
  const moved = moveOn(view, progress, rows);
  if (moved) return moved;
  if (progress.phase === "rolling_out") return rollOut(view, progress, rows);
  const open = calledOff(view, rows);
  if (progress.phase !== "succeeded" && open.size > 0) return { rows: open };
  return progress.phase === "rolling_back" ? rollBack(view, progress, rows) : ended(view, progress, rows);
}

function fresh({ owner, generation, now }: RolloutView): Progress {
  const { epoch, owner: id } = owner;
  return { epoch, owner: id, generation, phase: "pending", since: now, waves: [], started: [], canaries: 0 };
}

/**
 * The rows of this generation, in the order of its groups. A node that was removed from the cluster meanwhile is left out as long as it was not
 * touched; what has become of another one counts still: it may have been removed since the update broke it.
 */
function targetsOf(view: RolloutView, { waves }: Progress): ReadonlyMap<string, Row> {
  const { rows, generation } = view;
  const targets = new Map<string, Row>();
  for (const id of waves.flat()) {
    const row = rows.get(id);
    if (row?.generation === generation && !isLeftOut(view, id, row)) targets.set(id, row);
  }
  return targets;
}

function beforehand(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  // That it was begun is known by its rows alone, when what another owner wrote came over its progress.
  if (rows.size > 0) return begin(view, progress, rows);
  if (isWished(view, "rollback") && broughtBefore(view).length > 0) return goBack(view, progress);
  if (isWished(view, "cancel") || isWished(view, "rollback"))
    return change(progress, { phase: "cancelled", reason: "cancelled" }, view);
  if (!view.isApproved && view.spec.approvalPolicy === "manual")
    return progress.phase === "pending" ? wait(progress, ["approval"]) : change(progress, { phase: "pending" }, view);
  if (progress.phase === "pending") return change(progress, { phase: "ready" }, view);
  const why = whyNotStartAny(view) ?? whyOther(view);
  return why === undefined ? begin(view, progress, rows) : wait(progress, [why]);
}

function whyOther({ other }: RolloutView): string | undefined {
  return other === undefined ? undefined : `the update “${other}”`;
}

/** A node gets the orders of one update at a time: what begins to go back waits for another one as what begins does. */
function goBack(view: RolloutView, progress: Progress): Decision {
  const why = whyOther(view);
  if (why !== undefined) return wait(progress, [why]);
  const { reason: _, ...rest } = progress;
  // What a rollback before this one left is tried again.
  const isStale = progress.phase === "failed" && progress.undone !== undefined;
  return change(isStale ? rest : progress, { phase: "rolling_back" }, view);
}

function begin(view: RolloutView, progress: Progress, known: ReadonlyMap<string, Row>): Decision {
  // When another owner's word came over its progress, the nodes that it had begun with are approved, and no others.
  const mayChoose = known.size === 0 || view.isApproved || view.spec.approvalPolicy !== "manual";
  const selected = mayChoose ? selectNodes(view.nodes.values(), view.spec.selector) : [];
  if (selected.length + known.size === 0) return wait(progress, ["a node that the selector means"]);
  const { waves, canaries } = wavesOf(selected, view.spec, view.self);
  const strays = [...known.keys()].filter((id) => !waves.some((wave) => wave.includes(id)));
  // In a later epoch, a former owner may have begun without that being known here.
  const phase = view.owner.epoch === 1 && known.size === 0 ? "pending" : "preflight";
  const rows = selected.filter(({ id }) => !known.has(id)).map(({ id }) => [id, firstRow(view, id, phase)] as const);
  const { progress: begun = progress } = change(progress, { phase: "rolling_out" }, view);
  return {
    progress: { ...begun, waves: [...waves, ...strays.map((id) => [id])].map((wave) => [...wave]), canaries },
    rows: new Map(rows),
  };
}

/** What nodes said since; a node that a former owner had begun is among those that were started. */
function moveOn(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision | undefined {
  const moved = new Map<string, Row>();
  for (const [id, row] of rows) {
    const next = advance(view, id, row);
    if (next) moved.set(id, next);
  }
  if (moved.size === 0) return undefined;
  const isFound = (id: string, row: Row): boolean =>
    row.phase !== "pending" && row.untouched !== true && !progress.started.includes(id);
  const found = [...moved].filter(([id, row]) => isFound(id, row)).map(([id]) => id);
  if (found.length === 0) return { rows: moved };
  return { progress: { ...progress, started: [...progress.started, ...found] }, rows: moved };
}

function rollOut(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const isAll = (phase: Row["phase"]): boolean => [...rows.values()].every((row) => row.phase === phase);
  if (isAll("succeeded")) {
    const isBack = isWished(view, "rollback");
    return change(progress, { phase: isBack ? "rolling_back" : "succeeded" }, view);
  }
  // Those last two: a former owner had stopped it.
  const isStop = ({ phase }: Row): boolean => phase === "failed" || phase === "cancelled" || phase === "rolled_back";
  const isStopped = [...rows.values()].some(isStop) || isWished(view, "cancel") || isWished(view, "rollback");
  return isStopped ? stop(view, progress, rows) : startMore(view, progress, rows);
}

/** Goes no further: an activation is never interrupted, nor what comes behind it; what has only been prepared is called off. */
function stop(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const open = calledOff(view, rows);
  if (open.size > 0) return { rows: open };
  const busy = [...rows].filter(([, row]) => isActive(row));
  if (busy.length > 0)
    return wait(
      progress,
      busy.map(([id, row]) => whyBusy(view, id, row)),
    );
  const isBackBegun = [...rows.values()].some(({ phase }) => phase === "rolled_back");
  if (isWished(view, "rollback") || isBackBegun) return change(progress, { phase: "rolling_back" }, view);
  const [id, failed] = [...rows].find(([, { phase }]) => phase === "failed") ?? [];
  const { message = "failed", kind } = failed?.failure ?? {};
  const { automatic, onHealthGateFailure } = view.spec.rollback;
  const isBack = id !== undefined && automatic && (kind !== "gate" || onHealthGateFailure);
  const ill = isBack ? [] : whyNotWell(view, rows);
  if (ill.length > 0) return wait(progress, ill);
  if (id === undefined) return change(progress, { phase: "cancelled", reason: "cancelled" }, view);
  return change(
    progress,
    { phase: isBack ? "rolling_back" : "failed", reason: `${nameOf(view, id)}: ${message.split("\n", 1).join()}` },
    view,
  );
}

function whyBusy(view: RolloutView, id: string, row: Row): string {
  if (row.phase === "preflight") return whyUnconfirmed(view, id);
  return whyUntaken(view, id) ?? whyAsked(view, id, row) ?? `${nameOf(view, id)}, which is not interrupted`;
}

/**
 * What is called off when it goes no further. A node that was asked what a former owner began has some time to say so; one that is known to
 * obey another is not given up, since it may be anywhere: that takes a takeover. One that is silent, and ran the target by its last word, was
 * not taken back.
 */
function calledOff(view: RolloutView, rows: ReadonlyMap<string, Row>): ReadonlyMap<string, Row> {
  const isSilent = (id: string, row: Row): boolean =>
    row.phase === "preflight" && isLate(view, row, "activateSeconds") && otherOwnerOf(view, id) === undefined;
  const isLeft = (id: string, row: Row): boolean =>
    isSilent(id, row) && isGoingBack(view) && view.reports.get(id)?.present.id === view.target.id;
  const open = [...rows].filter(([id, row]) => isOpen(row) || isSilent(id, row));
  return new Map(
    open.map(([id, row]) => {
      if (isLeft(id, row)) return [id, fail(view, row, "rollback", "it did not say what it runs now")];
      const next = to(view, row, "cancelled");
      const mayBeDrained = row.phase === "draining" || (row.phase === "preflight" && view.spec.drain.enabled);
      return [id, mayBeDrained ? { ...next, drained: true } : next];
    }),
  );
}

/** It may go on when somebody asks for it, or when a node says late what a former owner did to it; for one that strayed it waits. */
function ended(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const { phase } = progress;
  if (phase === "succeeded" && [...rows.values()].some((row) => row.phase !== "succeeded"))
    return change(progress, { phase: "rolling_out" }, view);
  const isBack = phase === "rolled_back" ? undoable(view, progress, rows).length > 0 : isUndoAsked(view, progress);
  if (isBack) return goBack(view, progress);
  const strayed = [...rows].filter(([, row]) => row.phase === "preflight");
  return wait(
    progress,
    strayed.map(([id]) => whyUnconfirmed(view, id)),
  );
}
