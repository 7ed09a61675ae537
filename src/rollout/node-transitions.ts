import { omitUndefined } from "#base/omit-undefined.ts";
import { hookSeconds, hooksOf, hookStateOf, type HookState } from "./hooks.ts";
import type { FailureRecord, FailureKind, NodeAssignment, NodePhase, Report } from "./records.ts";
import { isOnTarget } from "./spec.ts";
import { whyUntaken } from "./eligibility.ts";
import { isGoingBack, notUpdatedReason, otherOwnerOf, reportOf, type RolloutInput } from "./rollout-input.ts";

/** The owner's decision about a node. */
type OwnerCommand = "start" | "call off" | "take back";
/** A state that the node reports, an observation of the owner, or its decision. */
type TransitionEvent = Report["state"] | keyof typeof observations | OwnerCommand;

interface NodeTransition {
  readonly from: readonly NodePhase[];
  readonly on: readonly TransitionEvent[];
  readonly when?: (at: Situation) => boolean;
  /** Absent if the phase stays. */
  readonly to?: NodePhase;
  readonly effects?: readonly ((at: Situation) => Partial<NodeAssignment>)[];
  /** Keeps the number of the order, because a new number would make the node begin its present step again. */
  readonly isSameOrder?: true;
}

const beforeWork = ["preflight", "pending"] as const;
const atWork = ["preparing", "activating", "rebooting", "verifying", "rolling_back"] as const;
const activationReports = ["activating", "rebooting", "activated"] as const;
const withoutSuccess = ["failed", "rolled_back", "cancelled"] as const;

/**
 * All transitions of a node, in the order in which they are tried; docs/updates.md draws them. In the phases that order a step, a report counts
 * only if it answers that order; in the others it has to name this owner and generation.
 */
export const nodeTransitions: readonly NodeTransition[] = [
  { from: ["pending"], on: ["start"], to: "preparing" },
  { from: ["prepared"], on: ["start"], when: drainIsEnabled, to: "draining" },
  { from: ["prepared"], on: ["start"], to: "activating" },
  { from: ["preparing"], on: ["prepared"], to: "prepared" },
  { from: ["activating"], on: ["rebooting"], to: "rebooting", isSameOrder: true },
  { from: ["activating", "rebooting"], on: ["activated"], to: "verifying" },
  { from: ["rolling_back"], on: ["rolled_back"], to: "rolled_back" },
  { from: ["prepared", ...atWork], on: ["failed"], to: "failed" },
  { from: ["draining"], on: ["its hooks are done"], to: "activating", effects: [drained] },
  { from: ["draining"], on: ["a hook failed", "its time is over"], to: "failed", effects: [drained] },
  { from: ["verifying"], on: ["a hook failed"], to: "failed" },
  { from: ["verifying"], on: ["its hooks are done"], when: isUpdated, to: "succeeded", effects: [workIsBack] },
  { from: ["verifying"], on: ["a hook is held back"], when: isUpdated, effects: [hooksMayBegin], isSameOrder: true },
  { from: atWork, on: ["its time is over"], to: "failed" },
  // Reports of work that a former owner began, or that ended after the owner had given it up.
  { from: [...beforeWork, "cancelled"], on: activationReports, to: "activating", effects: [drained] },
  { from: beforeWork, on: ["rolling_back"], to: "rolling_back", effects: [drained] },
  { from: ["succeeded", "cancelled"], on: ["rolling_back"], to: "rolling_back" },
  { from: beforeWork, on: ["rolled_back"], to: "rolled_back", effects: [drained] },
  { from: ["succeeded", "failed", "cancelled"], on: ["rolled_back"], to: "rolled_back" },
  { from: beforeWork, on: ["failed"], to: "failed", effects: [drained] },
  { from: ["succeeded"], on: ["failed"], to: "failed" },
  { from: beforeWork, on: ["fenced"], when: isOnTargetUnproven, to: "verifying" },
  { from: beforeWork, on: ["fenced"], when: hasTarget, to: "succeeded", effects: [untouched] },
  { from: ["preflight"], on: ["prepared"], to: "pending", effects: [drained] },
  { from: ["preflight"], on: ["fenced", "preparing"], to: "pending" },
  // The node obeys another owner, so it may run anything until it reports to this one, after a takeover.
  { from: ["succeeded"], on: ["another owner took it back"], to: "preflight" },
  { from: ["rolled_back", "cancelled"], on: ["another owner updated it"], to: "preflight" },
  { from: withoutSuccess, on: ["its hooks are done"], when: hasHooks, effects: [workIsBack], isSameOrder: true },
  { from: ["pending", "preparing", "prepared"], on: ["call off"], to: "cancelled" },
  { from: ["draining"], on: ["call off"], to: "cancelled", effects: [drained] },
  { from: ["preflight"], on: ["call off"], when: isSilentOnTarget, to: "failed" },
  { from: ["preflight"], on: ["call off"], when: isSilent, to: "cancelled", effects: [drained] },
  { from: ["succeeded", "failed", "cancelled"], on: ["take back"], to: "rolling_back" },
];

/** One node of a rollout, with the input of all guards and effects. */
interface Situation {
  readonly input: RolloutInput;
  readonly id: string;
  readonly row: NodeAssignment;
  /** The node's report to this owner about this generation. */
  readonly report: Report | undefined;
  readonly hooks: HookState;
}

/** The node's next assignment by its reports, hooks and time, or by its owner's command alone; undefined if nothing changes. */
export function nextAssignment(
  input: RolloutInput,
  id: string,
  row: NodeAssignment,
  command?: OwnerCommand,
): NodeAssignment | undefined {
  const at = { input, id, row, report: reportOf(input, id), hooks: hookStateOf(input, id, row) };
  const happens = (event: TransitionEvent): boolean => {
    if (command !== undefined) return event === command;
    return event in observations ? observations[event as keyof typeof observations](at) : reportedState(at) === event;
  };
  for (const { from, on, when, to, effects = [], isSameOrder } of nodeTransitions) {
    const event = from.includes(row.phase) ? on.find(happens) : undefined;
    if (event === undefined || when?.(at) === false) continue;
    const { asked: _, untouched: __, ...rest } = row;
    const next: NodeAssignment = isSameOrder ? { ...row } : { ...rest, seq: row.seq + 1 };
    if (to !== undefined) Object.assign(next, { phase: to, since: input.now });
    for (const effect of effects) Object.assign(next, effect(at));
    if (to === "failed") next.failure = failureOf(at, event);
    return omitUndefined(next);
  }
  return undefined;
}

/** The phases in which the node carries out an order: only a report on this very order counts. */
const orderPhases: ReadonlySet<NodePhase> = new Set(["preparing", "activating", "rebooting", "rolling_back"]);

function reportedState({ row, report }: Situation): Report["state"] | undefined {
  return orderPhases.has(row.phase) && report?.fence.seq !== row.seq ? undefined : report?.state;
}

const observations = {
  "a hook failed": ({ hooks }: Situation) => hooks.failed !== undefined,
  "a hook is held back": ({ hooks }: Situation) => hooks.held !== undefined,
  "its hooks are done": ({ hooks }: Situation) => Object.keys(hooks).length === 0,
  "its time is over": (at: Situation) => isOver(at),
  "another owner took it back": (at: Situation) => otherReport(at)?.state === "rolled_back",
  "another owner updated it": (at: Situation) => otherReport(at)?.present.id === at.input.target.id,
};

/** The node's report about this generation, if it obeys another owner. */
function otherReport({ input, id, row }: Situation): Report | undefined {
  const report = input.reports.get(id);
  return otherOwnerOf(input, id) !== undefined && report?.fence.generation === row.generation ? report : undefined;
}

function drainIsEnabled({ input }: Situation): boolean {
  return input.spec.drain.enabled;
}

function isUpdated({ input, id }: Situation): boolean {
  return notUpdatedReason(input, id) === undefined;
}

function hasTarget({ input, report }: Situation): boolean {
  return report !== undefined && isOnTarget(input.spec, input.target.id, report.present);
}

/** Whether the node runs the target, and an earlier generation may have left it broken or drained; false while going back. */
function isOnTargetUnproven(at: Situation): boolean {
  return hasTarget(at) && (at.row.drained === true || at.row.unproven === true) && !isGoingBack(at.input);
}

function hasHooks({ input, id, row }: Situation): boolean {
  return hooksOf(input, id, row).length > 0;
}

/**
 * Whether the node's time to report to this owner is over. A node that obeys another owner may run anything: giving it
 * up takes a takeover.
 */
function isSilent(at: Situation): boolean {
  return isOver(at) && otherOwnerOf(at.input, at.id) === undefined;
}

function isSilentOnTarget(at: Situation): boolean {
  const { input, id } = at;
  return isSilent(at) && isGoingBack(input) && input.reports.get(id)?.present.id === input.target.id;
}

/** Marks the node as drained if the update drains, even if only in part: the undrain hook alone brings the node's work back. */
function drained({ input }: Situation): Partial<NodeAssignment> {
  return input.spec.drain.enabled ? { drained: true } : {};
}

function workIsBack(): Partial<NodeAssignment> {
  return { drained: undefined, unproven: undefined };
}

/** Asks the bastion for its hooks, now that the node is updated; each hook has its own time. */
function hooksMayBegin(): Partial<NodeAssignment> {
  return { asked: true };
}

function untouched(): Partial<NodeAssignment> {
  return { untouched: true };
}

function failureOf(at: Situation, event: TransitionEvent): FailureRecord {
  const { row, report, hooks } = at;
  if (event === "failed" && row.phase === "rolling_back")
    return { kind: "rollback", message: report?.failure?.message ?? "it could not go back" };
  if (event === "failed") return report?.failure ?? { kind: "activation", message: "the node does not say why" };
  if (event !== "a hook failed" || !hooks.failed) return limitOf(at).failure;
  const { hook, message } = hooks.failed;
  return { kind: failureKindOf(hook), message: hook === "drain" ? message : `${hook}: ${message}`.slice(0, 2_000) };
}

function failureKindOf(hook: string | undefined): FailureKind {
  return hook === "drain" || hook === "undrain" ? "drain" : "gate";
}

/** The time beyond its limit in which a node has to report the outcome. */
const graceMs = 60_000;

/** The time limit of the node's phase, and the failure of a node that exceeds it. */
function limitOf({ input, id, row, report, hooks }: Situation): {
  readonly ms: number;
  readonly failure: FailureRecord;
} {
  const { timeouts, drain, activation } = input.spec;
  const reportWithin = (seconds: number, kind: FailureKind) => {
    const untaken = whyUntaken(input, id);
    const message = `the node did not say within ${seconds} s and a minute what came of it`;
    return {
      ms: seconds * 1000 + graceMs,
      failure: { kind, message: untaken === undefined ? message : `${message}: ${untaken}` },
    };
  };
  const { prepareSeconds, activateSeconds, rebootSeconds, verifySeconds } = timeouts;
  switch (row.phase) {
    case "preparing":
      return reportWithin(prepareSeconds, "build");
    case "draining":
      return { ms: drain.timeoutSeconds * 1000, failure: { kind: "drain", message: "it was not drained in time" } };
    case "activating":
    case "rebooting": {
      const isReboot = row.phase === "rebooting" || activation.rebootPolicy === "always";
      return isReboot ? reportWithin(rebootSeconds, "reboot") : reportWithin(activateSeconds, "unreachable");
    }
    case "verifying": {
      const missing = notUpdatedReason(input, id);
      const hookMs = row.asked === true ? hookSeconds(input, id, row) * 1000 + graceMs : 0;
      const kind = missing === undefined ? failureKindOf(hooks.next) : "gate";
      const message = missing ?? `“${hooks.next}” was not answered by the bastion`;
      return { ms: verifySeconds * 1000 + hookMs, failure: { kind, message } };
    }
    case "rolling_back":
      // A node that boots for the target may boot to go back.
      return reportWithin(
        report?.needsReboot === true ? Math.max(activateSeconds, rebootSeconds) : activateSeconds,
        "rollback",
      );
    default: {
      const failure = { kind: "rollback", message: "it did not say what it runs now" } as const;
      return { ms: activateSeconds * 1000 + graceMs, failure };
    }
  }
}

function isOver(at: Situation): boolean {
  return at.input.now - at.row.since > limitOf(at).ms;
}
