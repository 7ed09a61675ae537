import {
  addStart,
  startContextOf,
  mayRunTarget,
  whyNotStart,
  whyOutsideWindow,
  whyUnconfirmed,
  whyUntaken,
} from "./eligibility.ts";
import { whyHookDue } from "./hooks.ts";
import { nextAssignment } from "./node-transitions.ts";
import type { NodeAssignment, RolloutProgress } from "./records.ts";
import { nodesOfEarlierGenerations } from "./resume-after-takeover.ts";
import {
  isActive,
  isRequested,
  hostnameIn,
  notReadyReason,
  reportOf,
  type Decision,
  type Rollout,
  type RolloutInput,
} from "./rollout-input.ts";

/** Starts nodes of the first unfinished wave: first their preparation, then, if they may still be started, their activation. */
export function startNodes({ input, progress, rows }: Rollout): Decision {
  const isUnfinished = (id: string): boolean => rows.has(id) && rows.get(id)?.phase !== "succeeded";
  const first = progress.waves.findIndex((wave) => wave.some(isUnfinished));
  if (progress.canaries > 0 && first >= progress.canaries && progress.promoted !== true) return soak(input, progress);
  const closed = whyOutsideWindow(input);
  const starts = new Map<string, NodeAssignment>();
  const reasons = new Set<string>();
  const context = startContextOf(input, rows);
  for (const id of progress.waves[first] ?? []) {
    const row = rows.get(id);
    if (!row) continue;
    const busy = isActive(row) ? whyUnderWay(input, id, row) : undefined;
    if (busy !== undefined) reasons.add(busy);
    if (row.phase !== "pending" && row.phase !== "prepared") continue;
    const reason = closed ?? whyNotStart(input, id, context) ?? whyNotApproved(input, id, row);
    const next = reason === undefined ? nextAssignment(input, id, row, "start") : undefined;
    if (reason !== undefined) reasons.add(reason);
    if (!next) continue;
    starts.set(id, next);
    addStart(context, id, next);
  }
  if (starts.size === 0) return noteWait(progress, [...reasons]);
  const { waits: _, ...going } = progress;
  return { progress: withStarted(going, starts.keys()), rows: starts };
}

/** The progress with further started nodes. */
export function withStarted(progress: RolloutProgress, ids: Iterable<string>): RolloutProgress {
  return { ...progress, started: [...new Set([...progress.started, ...ids])] };
}

/** The reason why a node under way does not finish, if there is one. */
export function whyUnderWay(input: RolloutInput, id: string, row: NodeAssignment): string | undefined {
  if (row.phase === "preflight") return whyUnconfirmed(input, id);
  return whyUntaken(input, id) ?? whyHookDue(input, id, row);
}

/** By the policy `auto-non-disruptive` a disruption that shows only when the node is prepared waits for an operator. */
function whyNotApproved(input: RolloutInput, id: string, { phase }: NodeAssignment): string | undefined {
  const { spec, isApproved } = input;
  if (phase !== "prepared" || spec.approvalPolicy !== "auto-non-disruptive" || isApproved) return undefined;
  if (reportOf(input, id)?.needsReboot === true) return `approval: ${hostnameIn(input, id)} has to reboot`;
  return spec.drain.enabled ? `approval: ${hostnameIn(input, id)} has to be drained` : undefined;
}

/** Holds the waves after the canaries until an operator promotes them or the soak time is over. */
function soak(input: RolloutInput, progress: RolloutProgress): Decision {
  const { now, spec } = input;
  const promoted: Decision = { progress: { ...progress, promoted: true }, rows: new Map() };
  if (isRequested(input, "promote")) return promoted;
  const { soakSeconds } = spec.strategy.canary ?? {};
  if (soakSeconds === undefined) return noteWait(progress, ["promotion"]);
  const canaries = progress.waves.slice(0, progress.canaries).flat();
  // A canary may have been removed because the update broke it, which only an operator knows.
  const gone = canaries.filter((id) => !input.nodes.has(id));
  if (gone.length > 0)
    return noteWait(progress, [`promotion alone: the canary ${gone.join(", ")} is no node of this cluster any more`]);
  if (progress.soakSince === undefined) return { progress: { ...progress, soakSince: now }, rows: new Map() };
  // The soak time alone proves nothing: at its end every canary must be ready.
  const notReady = canaries.flatMap((id) => {
    const reason = notReadyReason(input, id);
    return reason === undefined ? [] : [`${hostnameIn(input, id)}, which ${reason}`];
  });
  if (now - progress.soakSince >= soakSeconds * 1000 && notReady.length === 0) return promoted;
  const time = `${soakSeconds} s since ${new Date(progress.soakSince).toISOString()}`;
  return noteWait(progress, [`promotion, or ${[time, ...notReady].join(" and ")}`]);
}

/** Takes nodes back, the last started first; as many at a time as may be down, or one by one with the strategy `one-at-a-time`. */
export function rollBackNodes(rollout: Rollout): Decision {
  const { input, progress, rows } = rollout;
  const busy = [...rows].filter(([, row]) => isActive(row));
  const starts = new Map<string, NodeAssignment>();
  const context = startContextOf(input, rows, true);
  const { type, maxUnavailable } = input.spec.strategy;
  const limit = type === "one-at-a-time" ? 1 : maxUnavailable;
  let reasons = busy.flatMap(([id, row]) => whyUnderWay(input, id, row) ?? []);
  for (const [id, row] of undoable(rollout)) {
    if (busy.length + starts.size >= limit) break;
    const reason = whyNotStart(input, id, context);
    const next = reason === undefined ? nextAssignment(input, id, row, "take back") : undefined;
    if (!next) {
      reasons = [reason ?? ""];
      break;
    }
    starts.set(id, next);
    addStart(context, id, next);
  }
  return starts.size > 0 ? { rows: starts } : noteWait(progress, reasons);
}

/** The nodes that a rollback takes back, in that order. A node that is not approved obeys no controller, so the others do not wait for it. */
export function undoable(rollout: Rollout): readonly (readonly [string, NodeAssignment])[] {
  return undoableAtAll(rollout).filter(([id]) => isApproved(rollout.input, id));
}

function isApproved({ nodes }: RolloutInput, id: string): boolean {
  return nodes.get(id)?.isApproved === true;
}

function undoableAtAll({ input, progress, rows }: Rollout): readonly (readonly [string, NodeAssignment])[] {
  const { started, since } = progress;
  const isUndoable = (id: string, row: NodeAssignment): boolean => {
    if (!input.nodes.has(id)) return false;
    if (row.untouched === true || row.phase === "cancelled") return isFromBefore(input, id, row);
    if (row.phase === "succeeded") return true;
    // A node that could not be taken back is tried again when an operator asks again.
    const hasRollbackFailed = row.failure?.kind === "rollback" && row.since >= since;
    return row.phase === "failed" && !hasRollbackFailed && mayRunTarget(input, id, row);
  };
  const startIndex = (id: string): number => started.indexOf(id);
  return [...rows].filter(([id, row]) => isUndoable(id, row)).toSorted(([a], [b]) => startIndex(b) - startIndex(a));
}

/** Whether an earlier generation of this update brought the target, so that the node can still go back. */
function isFromBefore(input: RolloutInput, id: string, { phase }: NodeAssignment): boolean {
  const { previous, present } = reportOf(input, id) ?? {};
  return previous !== undefined && (phase === "succeeded" || present?.id === input.target.id);
}

/** The nodes, by name, that a rollback has not taken back and no longer tries. */
export function leftBehind(rollout: Rollout): readonly string[] {
  const { input, rows } = rollout;
  const remaining = new Set(undoableAtAll(rollout).map(([id]) => id));
  const isGivenUp = (id: string, row: NodeAssignment): boolean =>
    input.nodes.has(id) && row.phase === "failed" && (row.failure?.kind === "rollback" || mayRunTarget(input, id, row));
  return [...rows]
    .filter(([id, row]) => remaining.has(id) || isGivenUp(id, row))
    .map(([id]) => `${hostnameIn(input, id)}${isApproved(input, id) ? "" : ", which is not approved"}`);
}

/**
 * Whether no node was begun and none has anything of an earlier generation, so there is nothing to take back. A later
 * owner may not know which nodes the former one began, unless no node was chosen.
 */
export function isUnbegun(input: RolloutInput, progress: RolloutProgress): boolean {
  const { epoch, started, waves } = progress;
  if (epoch === 1 ? started.length > 0 : waves.length > 0) return false;
  const rows = new Map([...input.rows].filter(([, { generation }]) => generation === input.generation));
  return undoableAtAll({ input, progress, rows }).length + nodesOfEarlierGenerations(input).length === 0;
}

/** A decision that records why the rollout does not continue; empty if the reasons have not changed. */
export function noteWait(progress: RolloutProgress, reasons: readonly string[]): Decision {
  const { waits, ...rest } = progress;
  const why = reasons.length > 0 ? clipReason(reasons.join("; ")) : undefined;
  if (waits === why) return { rows: new Map() };
  return { progress: why === undefined ? rest : { ...rest, waits: why }, rows: new Map() };
}

/** The most characters of a reason: a rollout may wait for hundreds of nodes, and the text must fit into a register. */
const longestReason = 2_000;

export function clipReason(text: string): string {
  return text.length > longestReason ? `${text.slice(0, longestReason - 2)} …` : text;
}
