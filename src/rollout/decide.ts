import { advance, to } from "./advance.ts";
import type { NodePhase, Progress, Row, UpdatePhase } from "./records.ts";
import { selectNodes, wavesOf } from "./select.ts";
import { unavailableOf, whyNotStart, whyNotStartAny } from "./starts.ts";
import { isActive, reportOf, type RolloutView } from "./view.ts";

/** What the owner writes next; empty when it has to wait for something. */
export interface Decision {
  readonly progress?: Progress;
  readonly rows: ReadonlyMap<string, Row>;
}

const nothing: Decision = { rows: new Map() };

/**
 * The next records of a rollout, from all that is known: a pure function, called again when they are durable and when something else
 * changed. Nodes act on rows, so whatever is done was written before. Only the owner gets a decision.
 */
export function decide(view: RolloutView): Decision {
  const { owner, self, progress } = view;
  if (owner.owner !== self) return nothing;
  if (progress?.generation !== view.generation) return { progress: fresh(view), rows: new Map() };
  if (progress.epoch !== owner.epoch || progress.owner !== owner.owner) return adopt(view, progress);
  switch (progress.phase) {
    case "pending":
    case "ready":
      return beforehand(view, progress);
    case "rolling_out":
      return rollOut(view, progress);
    case "rolling_back":
      return rollBack(view, progress);
    case "succeeded":
    case "failed":
    case "cancelled":
      return isUndoAsked(view, progress) ? change(progress, { phase: "rolling_back" }, view) : nothing;
    case "rolled_back":
      return nothing;
  }
}

function fresh(view: RolloutView): Progress {
  const { owner, generation, now } = view;
  return { ...owner, generation, phase: "pending", since: now, waves: [], started: [], canaries: 0 };
}

/** A new owner goes on where the former one was, as far as it is known here; nodes tell the rest. */
function adopt({ owner, rows, generation }: RolloutView, progress: Progress): Decision {
  const adopted = [...rows].filter(([, row]) => row.generation === generation);
  return {
    progress: { ...progress, epoch: owner.epoch, owner: owner.owner },
    rows: new Map(
      adopted.map(([id, row]) => [id, { ...row, epoch: owner.epoch, owner: owner.owner, seq: row.seq + 1 }]),
    ),
  };
}

function beforehand(view: RolloutView, progress: Progress): Decision {
  if (isWished(view, "cancel") || isWished(view, "rollback"))
    return change(progress, { phase: "cancelled", reason: "cancelled" }, view);
  if (!view.isApproved && view.spec.approvalPolicy === "manual")
    return progress.phase === "pending" ? wait(progress, "approval") : change(progress, { phase: "pending" }, view);
  if (progress.phase === "pending") return change(progress, { phase: "ready" }, view);
  const selected = selectNodes(view.nodes.values(), view.spec.selector);
  if (selected.length === 0) return wait(progress, "a node that the selector means");
  const why = whyNotStartAny(view);
  if (why !== undefined) return wait(progress, why);
  const { waves, canaries } = wavesOf(selected, view.spec, view.self);
  const rows = new Map(selected.map(({ id }) => [id, pendingRow(view, id)]));
  const { progress: begun } = change(progress, { phase: "rolling_out" }, view);
  return { progress: { ...begun!, waves: waves.map((wave) => [...wave]), canaries, started: [] }, rows };
}

function pendingRow({ owner, rows, generation, now }: RolloutView, id: string): Row {
  return { ...owner, generation, seq: (rows.get(id)?.seq ?? 0) + 1, phase: "pending", since: now };
}

function rollOut(view: RolloutView, progress: Progress): Decision {
  const moved = moveOn(view, progress);
  if (moved) return moved;
  const rows = targetsOf(view, progress);
  const failed = [...rows].filter(([, { phase }]) => phase === "failed");
  const isStopped = failed.length > 0 || isWished(view, "cancel") || isWished(view, "rollback");
  if (isStopped) return stop(view, progress, rows, failed);
  if ([...rows.values()].every(({ phase }) => phase === "succeeded"))
    return change(progress, { phase: "succeeded" }, view);
  return startMore(view, progress, rows);
}

/** What nodes said since; a node that a former owner had begun is among those that were started. */
function moveOn(view: RolloutView, progress: Progress): Decision | undefined {
  const moved = new Map<string, Row>();
  for (const [id, row] of targetsOf(view, progress)) {
    const next = advance(view, id, row);
    if (next) moved.set(id, next);
  }
  if (moved.size === 0) return undefined;
  const found = [...moved].filter(([id, row]) => row.untouched !== true && !progress.started.includes(id));
  if (found.length === 0) return { rows: moved };
  return { progress: { ...progress, started: [...progress.started, ...found.map(([id]) => id)] }, rows: moved };
}

function stop(
  view: RolloutView,
  progress: Progress,
  rows: ReadonlyMap<string, Row>,
  failed: readonly (readonly [string, Row])[],
): Decision {
  // An activation is never interrupted, nor what comes behind it; what has only been prepared goes no further.
  const open = [...rows].filter(([, { phase }]) => beforeActivation.has(phase));
  if (open.length > 0) return { rows: cancelled(view, open) };
  const busy = [...rows].filter(([, row]) => isActive(row)).map(([id]) => nameOf(view, id));
  if (busy.length > 0) return wait(progress, `${busy.join(", ")}, which is not interrupted`);
  const [first] = failed;
  if (isWished(view, "rollback")) return change(progress, { phase: "rolling_back" }, view);
  if (!first) return change(progress, { phase: "cancelled", reason: "cancelled" }, view);
  const [id, { failure }] = first;
  const reason = `${nameOf(view, id)}: ${failure?.message ?? "failed"}`;
  const { automatic, onHealthGateFailure } = view.spec.rollback;
  const isBack = automatic && (failure?.kind !== "gate" || onHealthGateFailure);
  return change(progress, { phase: isBack ? "rolling_back" : "failed", reason }, view);
}

const beforeActivation: ReadonlySet<NodePhase> = new Set(["pending", "preparing", "prepared", "draining"]);

function cancelled(view: RolloutView, rows: readonly (readonly [string, Row])[]): ReadonlyMap<string, Row> {
  return new Map(
    rows.map(([id, row]) => {
      const next = to(view, row, "cancelled");
      return [id, row.phase === "draining" ? { ...next, drained: true } : next];
    }),
  );
}

function startMore(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const at = progress.waves.findIndex((wave) => wave.some((id) => rows.get(id)?.phase !== "succeeded"));
  if (progress.canaries > 0 && at >= progress.canaries && progress.promoted !== true) return soak(view, progress);
  const why = whyNotStartAny(view);
  const starts = new Map<string, Row>();
  const reasons: string[] = why === undefined ? [] : [why];
  const unavailable = unavailableOf(view, rows);
  for (const id of why === undefined ? (progress.waves[at] ?? []) : []) {
    const row = rows.get(id);
    if (row?.phase !== "pending") continue;
    const reason = whyNotStart(view, id, { rows, starts, unavailable });
    if (reason === undefined) {
      starts.set(id, { ...to(view, row, "preparing"), ...fromOf(view, id) });
      unavailable.add(id);
    } else if (!reasons.includes(reason)) reasons.push(reason);
  }
  if (starts.size === 0) return wait(progress, reasons.join("; ") || undefined);
  const { waits: _, ...going } = progress;
  return { progress: { ...going, started: [...progress.started, ...starts.keys()] }, rows: starts };
}

function fromOf(view: RolloutView, id: string): Pick<Row, "from"> {
  const report = reportOf(view, id);
  return report ? { from: report.present } : {};
}

function soak(view: RolloutView, progress: Progress): Decision {
  const { now, spec } = view;
  if (isWished(view, "promote")) return { progress: { ...progress, promoted: true }, rows: new Map() };
  const { soakSeconds } = spec.strategy.canary ?? {};
  if (soakSeconds === undefined) return wait(progress, "promotion");
  if (progress.soakSince === undefined) return { progress: { ...progress, soakSince: now }, rows: new Map() };
  if (now - progress.soakSince >= soakSeconds * 1000)
    return { progress: { ...progress, promoted: true }, rows: new Map() };
  return wait(progress, `promotion, or ${soakSeconds} s since ${new Date(progress.soakSince).toISOString()}`);
}

function rollBack(view: RolloutView, progress: Progress): Decision {
  const moved = moveOn(view, progress);
  if (moved) return moved;
  const rows = targetsOf(view, progress);
  const open = [...rows].filter(([id, row]) => isUndoable(view, id, row));
  open.sort(([a], [b]) => progress.started.indexOf(b) - progress.started.indexOf(a));
  const busy = [...rows.values()].filter(isActive);
  if (open.length === 0 && busy.length === 0) return undone(view, progress, rows);
  // In reverse order, as many at a time as may be down.
  const unavailable = unavailableOf(view, rows);
  const starts = new Map<string, Row>();
  const reasons: string[] = [];
  const limit = view.spec.strategy.type === "one-at-a-time" ? 1 : view.spec.strategy.maxUnavailable;
  for (const [id, row] of open) {
    if (busy.length + starts.size >= limit) break;
    const reason = whyNotStart(view, id, { rows, starts, unavailable, isBack: true });
    if (reason !== undefined) {
      reasons.push(reason);
      break;
    }
    starts.set(id, to(view, row, "rolling_back"));
    unavailable.add(id);
  }
  return starts.size > 0 ? { rows: starts } : wait(progress, reasons.join("; ") || undefined);
}

/** Whether a node has something that must be taken back: it runs the target, or may run it for all that is known. */
function isUndoable(view: RolloutView, id: string, row: Row | undefined): boolean {
  if (!row || row.untouched === true) return false;
  if (row.phase === "succeeded") return true;
  return row.phase === "failed" && row.failure?.kind !== "rollback" && mayRunTarget(view, id);
}

function mayRunTarget(view: RolloutView, id: string): boolean {
  const report = reportOf(view, id);
  return (
    !report || report.present.id === view.target.id || report.state === "activating" || report.state === "rebooting"
  );
}

function undone(view: RolloutView, progress: Progress, rows: ReadonlyMap<string, Row>): Decision {
  const left = progress.started.filter((id) => rows.get(id)?.phase === "failed" && mayRunTarget(view, id));
  const done = { ...progress, undone: view.wishes.rollback?.at ?? "by itself" };
  if (left.length === 0) return change(done, { phase: "rolled_back" }, view);
  const names = left.map((id) => nameOf(view, id)).join(", ");
  return change(done, { phase: "failed", reason: `not taken back on ${names}` }, view);
}

/** A rollback that somebody asked for since the last one ended. */
function isUndoAsked(view: RolloutView, progress: Progress): boolean {
  return isWished(view, "rollback") && view.wishes.rollback?.at !== progress.undone;
}

function targetsOf({ rows, generation }: RolloutView, { waves }: Progress): ReadonlyMap<string, Row> {
  const targets = new Map<string, Row>();
  for (const id of waves.flat()) {
    const row = rows.get(id);
    if (row?.generation === generation) targets.set(id, row);
  }
  return targets;
}

function isWished({ wishes, generation }: RolloutView, action: keyof RolloutView["wishes"]): boolean {
  return wishes[action]?.generation === generation;
}

function nameOf({ nodes }: RolloutView, id: string): string {
  return nodes.get(id)?.hostname ?? id;
}

function change(
  progress: Progress,
  { phase, reason }: { readonly phase: UpdatePhase; readonly reason?: string },
  { now }: RolloutView,
): Decision {
  const { waits: _, ...going } = progress;
  return { progress: { ...going, phase, since: now, ...(reason === undefined ? {} : { reason }) }, rows: new Map() };
}

/** Tells why it does not go on; written only when that is another reason than before. */
function wait(progress: Progress, waits: string | undefined): Decision {
  if (progress.waits === waits) return nothing;
  const { waits: _, ...rest } = progress;
  return { progress: waits === undefined ? rest : { ...rest, waits }, rows: new Map() };
}
