import { omitUndefined } from "#base/omit-undefined.ts";
import { whyOutsideWindow } from "./eligibility.ts";
import { whyWithoutWork } from "./hooks.ts";
import type { NodeAssignment, RolloutProgress, UpdatePhase } from "./records.ts";
import { firstRow, nodesOfEarlierGenerations, withStrays } from "./resume-after-takeover.ts";
import { isActive, isRequested, hostnameIn, type Decision, type Rollout, type RolloutNode } from "./rollout-input.ts";
import { clipReason, leftBehind, undoable, noteWait, whyUnderWay } from "./schedule.ts";
import { matchSelector, divideIntoWaves } from "./selection.ts";

type TransitionGuard = (rollout: Rollout) => boolean;
/** The reasons why the transition has to wait. */
type WaitReasons = (rollout: Rollout) => readonly string[];
type Effect = (rollout: Rollout) => { readonly progress: Partial<RolloutProgress>; readonly rows?: Decision["rows"] };

interface UpdateTransition {
  readonly from: readonly UpdatePhase[];
  /** All guards must hold. */
  readonly when: readonly TransitionGuard[];
  readonly waits?: readonly WaitReasons[];
  readonly to: UpdatePhase;
  readonly effect?: Effect;
}

const notStarted = ["pending", "ready"] as const;
const over = ["succeeded", "failed", "cancelled"] as const;
const rest = [nodesUnderWay, nodesWithoutWork];

/** All transitions of an update, in the order in which they are tried; docs/updates.md draws them. */
export const updateTransitions: readonly UpdateTransition[] = [
  { from: notStarted, when: [nodesWereBegun], to: "rolling_out", effect: choosesNodes },
  { from: notStarted, when: [rollbackFindsNodes], waits: [otherUpdate], to: "rolling_back", effect: asksEarlierNodes },
  { from: notStarted, when: [cancelOrRollbackAsked], to: "cancelled", effect: saysCancelled },
  { from: ["ready"], when: [approvalIsMissing], to: "pending" },
  { from: ["pending"], when: [], waits: [approval], to: "ready" },
  { from: ["ready"], when: [], waits: [window, otherUpdate, selectedNode], to: "rolling_out", effect: choosesNodes },
  { from: ["rolling_out"], when: [allSucceeded, rollbackAsked], to: "rolling_back" },
  { from: ["rolling_out"], when: [allSucceeded], to: "succeeded" },
  { from: ["rolling_out"], when: [isStopped, rollbackAskedOrBegun], waits: [nodesUnderWay], to: "rolling_back" },
  { from: ["rolling_out"], when: [failureGoesBack], waits: [nodesUnderWay], to: "rolling_back", effect: tellsFailure },
  { from: ["rolling_out"], when: [aNodeFailed], waits: rest, to: "failed", effect: tellsFailure },
  { from: ["rolling_out"], when: [isStopped], waits: rest, to: "cancelled", effect: saysCancelled },
  { from: ["rolling_back"], when: [allAreBack], waits: [nodesWithoutWork], to: "rolled_back", effect: notesRollback },
  { from: ["rolling_back"], when: [noMoreGoBack], waits: [nodesWithoutWork], to: "failed", effect: tellsNodesLeft },
  { from: ["succeeded"], when: [aNodeHasNotSucceeded], to: "rolling_out" },
  { from: ["rolled_back"], when: [aNodeIsToGoBack], waits: [otherUpdate], to: "rolling_back" },
  { from: over, when: [rollbackAskedAnew], waits: [otherUpdate], to: "rolling_back", effect: asksEarlierNodes },
];

/** The update's next phase, or the reasons for which it waits in the present one; undefined if no transition applies. */
export function nextPhase(rollout: Rollout): Decision | undefined {
  const { input, progress } = rollout;
  const found = updateTransitions.find(
    ({ from, when }) => from.includes(progress.phase) && when.every((guard) => guard(rollout)),
  );
  if (!found) return undefined;
  for (const waits of found.waits ?? []) {
    const reasons = waits(rollout);
    if (reasons.length > 0) return noteWait(progress, reasons);
  }
  const { waits: _, ...going } = progress;
  const { progress: more, rows = new Map() } = found.effect?.(rollout) ?? {};
  return { progress: omitUndefined({ ...going, phase: found.to, since: input.now, ...more }), rows };
}

function nodesWereBegun({ rows }: Rollout): boolean {
  // If another owner's record has replaced the progress, only the rows show it.
  return rows.size > 0;
}

function rollbackAsked({ input }: Rollout): boolean {
  return isRequested(input, "rollback");
}

function cancelOrRollbackAsked({ input }: Rollout): boolean {
  return isRequested(input, "cancel") || isRequested(input, "rollback");
}

/** Whether an operator requested a rollback that has not been carried out. */
function rollbackAskedAnew({ input, progress }: Rollout): boolean {
  return isRequested(input, "rollback") && input.requests.rollback?.at !== progress.undone;
}

function rollbackAskedOrBegun(rollout: Rollout): boolean {
  return rollbackAsked(rollout) || isAnyNode(rollout, "rolled_back");
}

function isAnyNode({ rows }: Rollout, ...phases: readonly NodeAssignment["phase"][]): boolean {
  return [...rows.values()].some(({ phase }) => phases.includes(phase));
}

function rollbackFindsNodes({ input }: Rollout): boolean {
  return isRequested(input, "rollback") && nodesOfEarlierGenerations(input).length > 0;
}

function approvalIsMissing({ input }: Rollout): boolean {
  return !input.isApproved && input.spec.approvalPolicy === "manual";
}

function allSucceeded({ rows }: Rollout): boolean {
  return [...rows.values()].every(({ phase }) => phase === "succeeded");
}

function aNodeHasNotSucceeded(rollout: Rollout): boolean {
  return !allSucceeded(rollout);
}

/** Whether a node failed, an operator requested the end, or a former owner had stopped the rollout. */
export function isStopped(rollout: Rollout): boolean {
  return isAnyNode(rollout, "failed", "cancelled", "rolled_back") || cancelOrRollbackAsked(rollout);
}

function failedNode({ rows }: Rollout): readonly [string, NodeAssignment] | undefined {
  return [...rows].find(([, { phase }]) => phase === "failed");
}

function aNodeFailed(rollout: Rollout): boolean {
  return failedNode(rollout) !== undefined;
}

function failureGoesBack(rollout: Rollout): boolean {
  const [, row] = failedNode(rollout) ?? [];
  const { automatic, onHealthGateFailure } = rollout.input.spec.rollback;
  return row !== undefined && automatic && (row.failure?.kind !== "gate" || onHealthGateFailure);
}

function aNodeIsToGoBack(rollout: Rollout): boolean {
  return undoable(rollout).length > 0;
}

function noMoreGoBack(rollout: Rollout): boolean {
  return !aNodeIsToGoBack(rollout) && ![...rollout.rows.values()].some(isActive);
}

function allAreBack(rollout: Rollout): boolean {
  return noMoreGoBack(rollout) && leftBehind(rollout).length === 0;
}

function approval(rollout: Rollout): readonly string[] {
  return approvalIsMissing(rollout) ? ["approval"] : [];
}

function window({ input }: Rollout): readonly string[] {
  return [whyOutsideWindow(input) ?? []].flat();
}

/** A node obeys one update at a time. */
function otherUpdate({ input: { other } }: Rollout): readonly string[] {
  return other === undefined ? [] : [`the update “${other}”`];
}

function selectedBy({ nodes, spec }: Rollout["input"]): readonly RolloutNode[] {
  return matchSelector(nodes.values(), spec.selector);
}

function selectedNode({ input }: Rollout): readonly string[] {
  return selectedBy(input).length > 0 ? [] : ["a node that the selector means"];
}

/** An activation is never interrupted. */
function nodesUnderWay({ input, rows }: Rollout): readonly string[] {
  const busy = [...rows].filter(([, row]) => isActive(row));
  return busy.map(([id, row]) => whyUnderWay(input, id, row) ?? `${hostnameIn(input, id)}, which is not interrupted`);
}

function nodesWithoutWork({ input, rows }: Rollout): readonly string[] {
  return whyWithoutWork(input, rows);
}

function choosesNodes({ input, rows }: Rollout): ReturnType<Effect> {
  const { spec, owner, self, isApproved } = input;
  // If another owner's record has replaced the progress, the begun nodes are approved, and no others.
  const mayChoose = rows.size === 0 || isApproved || spec.approvalPolicy !== "manual";
  const selected = mayChoose ? selectedBy(input) : [];
  const { waves, canaries } = divideIntoWaves(selected, spec, self);
  // In a later epoch a former owner may have begun a node, unknown here.
  const phase = owner.epoch === 1 && rows.size === 0 ? "pending" : "preflight";
  const fresh = selected.filter(({ id }) => !rows.has(id)).map(({ id }) => [id, firstRow(input, id, phase)] as const);
  return { progress: { waves: withStrays(waves, rows.keys()), canaries }, rows: new Map(fresh) };
}

/**
 * A rollback of a generation that never began takes the nodes that earlier generations updated; each must first report its version. `started`
 * has the order in which an update would start them now.
 */
function asksEarlierNodes({ input, progress }: Rollout): ReturnType<Effect> {
  // A second rollback tries the nodes again that the first one left, so the first one's reason is void.
  const isRepeated = progress.phase === "failed" && progress.undone !== undefined;
  const reason = isRepeated ? undefined : progress.reason;
  if (progress.waves.length > 0) return { progress: { reason } };
  const waves = divideIntoWaves(nodesOfEarlierGenerations(input), input.spec, input.self).waves.map((wave) => [
    ...wave,
  ]);
  const rows = waves.flat().map((id) => [id, firstRow(input, id, "preflight")] as const);
  return { progress: { reason, waves, started: waves.flat() }, rows: new Map(rows) };
}

function saysCancelled(): ReturnType<Effect> {
  return { progress: { reason: "cancelled" } };
}

function tellsFailure(rollout: Rollout): ReturnType<Effect> {
  const [id = "", { failure } = {}] = failedNode(rollout) ?? [];
  const [message] = (failure?.message ?? "failed").split("\n", 1);
  return { progress: { reason: clipReason(`${hostnameIn(rollout.input, id)}: ${message}`) } };
}

function notesRollback({ input }: Rollout): ReturnType<Effect> {
  return {
    progress: { undone: (isRequested(input, "rollback") ? input.requests.rollback?.at : undefined) ?? "by itself" },
  };
}

function tellsNodesLeft(rollout: Rollout): ReturnType<Effect> {
  const reason = clipReason(`not taken back: ${leftBehind(rollout).join("; ")}`);
  return { progress: { ...notesRollback(rollout).progress, reason } };
}
