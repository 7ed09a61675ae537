import { hasEnded, type Attendance, type HookAnswer, type NodeAssignment } from "./records.ts";
import { mayRunTarget } from "./eligibility.ts";
import {
  hookKey,
  isAtRest,
  hostnameIn,
  notReadyReason,
  notUpdatedReason,
  reportOf,
  type RolloutInput,
} from "./rollout-input.ts";
import type { UpdateSpec } from "./spec.ts";

type Hook = { readonly state?: string | undefined; readonly command?: string | undefined };

/** Whether the bastion has to act: the manifest names a state or a command. */
export function isHook(hook: Hook | undefined): boolean {
  return hook?.state !== undefined || hook?.command !== undefined;
}

/** A state for a node, or a command on the bastion, that a drain or a gate of an update names. */
export interface BastionHook {
  /** The name in a rollout's requests: `drain`, `gate NAME` or `undrain`. */
  readonly name: string;
  readonly kind: "state" | "command";
  readonly state: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly command: string;
  readonly limitSeconds: number;
  /** Seconds by which a drain ends before the controller's limit, so that the answer with its output arrives in time; 0 for other hooks. */
  readonly spareSeconds: number;
  readonly isGate: boolean;
}

/** The most seconds that ending a drain and answering take. */
const longestSpare = 5;
/** The share of its limit that a short drain spares at most. */
const spareShare = 0.2;

/** All hooks of an update that the bastion carries out: `drain`, each `gate NAME`, `undrain`. */
export function bastionHooks({ drain, healthGates }: UpdateSpec): readonly BastionHook[] {
  const { enabled, timeoutSeconds: limitSeconds, after } = drain;
  const spareSeconds = Math.min(longestSpare, limitSeconds * spareShare);
  const common = { limitSeconds, spareSeconds: 0, isGate: false };
  return [
    ...(enabled ? [{ ...drain, ...common, name: "drain", spareSeconds }] : []),
    ...healthGates.map((gate) => ({
      ...gate,
      ...common,
      name: `gate ${gate.name}`,
      limitSeconds: gate.withinSeconds,
      isGate: true,
    })),
    ...(after ? [{ ...after, ...common, name: "undrain" }] : []),
  ]
    .filter(isHook)
    .map(({ name, state = "", params = {}, command = "", ...limits }) => ({
      name,
      kind: state === "" ? "command" : "state",
      state,
      params,
      command,
      limitSeconds: limits.limitSeconds,
      spareSeconds: limits.spareSeconds,
      isGate: limits.isGate,
    }));
}

/** The hooks of a node in its present phase, in the order in which they run. */
export function hooksOf(input: RolloutInput, id: string, row: NodeAssignment): readonly BastionHook[] {
  const all = bastionHooks(input.spec);
  const undrain = row.drained === true ? all.filter(({ name }) => name === "undrain") : [];
  switch (row.phase) {
    case "draining":
      return all.filter(({ name }) => name === "drain");
    case "verifying":
      return [...all.filter(({ isGate }) => isGate), ...undrain];
    case "failed":
      // Work returns to a node that went back by itself, and to none that may run the failed target.
      return mayRunTarget(input, id, row) || isStuck(input, id, row) ? [] : undrain;
    case "cancelled":
      return row.unproven === true && mayRunTarget(input, id, row) ? [] : undrain;
    case "rolled_back":
      return undrain;
    default:
      return [];
  }
}

/** Whether the node failed and could not go back, or has not done so yet. */
export function isStuck(input: RolloutInput, id: string, row: NodeAssignment): boolean {
  const report = reportOf(input, id);
  const failures = [row.failure, report?.failure];
  return report?.state === "rolling_back" || failures.some((each) => each?.kind === "rollback" || each?.stuck === true);
}

/** The state of a node's hooks; empty if no hook is left to run. */
export interface HookState {
  /** The hook that is due now. */
  readonly next?: string;
  /** The hook that is due once the node is ready: work never returns to a node before. */
  readonly held?: string;
  /** The failed hook; on a node at rest it is due again. */
  readonly failed?: { readonly hook: string; readonly message: string };
}

/** The node's first hook that has not succeeded: it is due, held back or failed. */
export function hookStateOf(input: RolloutInput, id: string, row: NodeAssignment): HookState {
  for (const { name } of hooksOf(input, id, row)) {
    const answer = hookAnswer(input, id, row, name);
    if (answer?.ok === true) continue;
    const failed = answer && { failed: { hook: name, message: answer.message ?? "it failed" } };
    // No step follows at rest, so the undrain may be tried again.
    if (failed && !isAtRest(row)) return failed;
    return { ...(isHeld(input, id, row) ? { held: name } : { next: name }), ...failed };
  }
  return {};
}

function isHeld(input: RolloutInput, id: string, row: NodeAssignment): boolean {
  if (isAtRest(row)) return notReadyReason(input, id) !== undefined;
  return row.phase === "verifying" && (row.asked !== true || notUpdatedReason(input, id) !== undefined);
}

/** The hook whose answer counts now, if any. While the node is not ready for a moment, an answer to a requested hook still counts. */
export function answerable(input: RolloutInput, id: string, row: NodeAssignment): string | undefined {
  const { next, held } = hookStateOf(input, id, row);
  return next ?? (row.asked === true || isAtRest(row) ? held : undefined);
}

/**
 * The drained nodes at rest that are not ready, each with its reason. The rollout does not end before their undrain, so that the process that
 * runs its hooks still exists then. The rollout waits at most verifySeconds for a node.
 */
export function whyWithoutWork(input: RolloutInput, rows: ReadonlyMap<string, NodeAssignment>): readonly string[] {
  const limit = input.spec.timeouts.verifySeconds * 1000;
  const isAwaited = (id: string, row: NodeAssignment): boolean =>
    isAtRest(row) &&
    input.now - row.since <= limit &&
    input.nodes.get(id)?.isApproved === true &&
    isUntriedHookHeld(input, id, row);
  const awaited = [...rows].filter(([id, row]) => isAwaited(id, row));
  return awaited.map(
    ([id]) => `${hostnameIn(input, id)}, which ${notReadyReason(input, id)}, before work comes back to it`,
  );
}

function isUntriedHookHeld(input: RolloutInput, id: string, row: NodeAssignment): boolean {
  const { held, failed } = hookStateOf(input, id, row);
  return held !== undefined && failed === undefined;
}

/** The reason to wait while the bastion has to run a hook of the node; undefined if no hook is due. */
export function whyHookDue(input: RolloutInput, id: string, row: NodeAssignment): string | undefined {
  const { next } = hookStateOf(input, id, row);
  return next && `the bastion: ${next} of ${hostnameIn(input, id)} (${attendedBy(input)})`;
}

/** The process that runs an update's hooks, as far as the cluster knows, and the command that starts one. */
function attendedBy({ name, attendance }: RolloutInput): string {
  const command = `kcore update cluster run-hooks ${name}`;
  if (!attendance) return `unattended: ${command}`;
  return `attended by ${attendantOf(attendance)}, unless that process has ended: ${command}`;
}

/** The attending process in words. */
export function attendantOf({ by, host, at }: Attendance): string {
  return `${by} on ${host} since ${at}`;
}

/** The sum of the time limits of a node's hooks, up to and including the first without an answer. */
export function hookSeconds(input: RolloutInput, id: string, row: NodeAssignment): number {
  const hooks = hooksOf(input, id, row);
  const open = hooks.findIndex(({ name }) => hookAnswer(input, id, row, name) === undefined);
  const begun = open < 0 ? hooks : hooks.slice(0, open + 1);
  return begun.reduce((sum, { limitSeconds }) => sum + limitSeconds, 0);
}

function hookAnswer({ answers }: RolloutInput, id: string, row: NodeAssignment, name: string): HookAnswer | undefined {
  const answer = answers.get(hookKey(id, name));
  return answer && isAnswerTo(answer, row) ? answer : undefined;
}

function isAnswerTo({ generation, seq, epoch, owner }: HookAnswer, row: NodeAssignment): boolean {
  return generation === row.generation && seq === row.seq && epoch === row.epoch && owner === row.owner;
}

/** Whether a node was drained and has not got its work back. Success ends a drain, because earlier versions kept `drained` then. */
export function isDrained(input: RolloutInput, id: string, row: NodeAssignment): boolean {
  const isOver = row.phase === "succeeded" || hookAnswer(input, id, row, "undrain")?.ok === true;
  return row.drained === true && !isOver;
}

/** The reason why the update failed, was cancelled or goes back, and after its end the nodes that stay drained. */
export function outcomeReason(input: RolloutInput): string | undefined {
  const { progress, rows, generation } = input;
  if (progress?.generation !== generation) return undefined;
  const drained = hasEnded(progress.phase) ? [...rows].flatMap(([id, row]) => whyDrained(input, id, row) ?? []) : [];
  const reasons = [progress.reason, ...drained].filter((reason) => reason !== undefined);
  return reasons.length > 0 ? reasons.join("; ") : undefined;
}

function whyDrained(input: RolloutInput, id: string, row: NodeAssignment): string | undefined {
  if (!isAtRest(row) || !isDrained(input, id, row) || !isHook(input.spec.drain.after)) return undefined;
  const name = hostnameIn(input, id);
  if (row.generation !== input.generation)
    return input.nodes.has(id) ? `${name} stays drained, since generation ${row.generation}` : undefined;
  const { next, held, failed } = hookStateOf(input, id, row);
  if (failed) return `${name} stays drained: ${failed.hook}: ${failed.message}`;
  if (next !== undefined) return `${name} is drained until the bastion lets work come back (${attendedBy(input)})`;
  if (held !== undefined) return `${name} stays drained until it is well: it ${notReadyReason(input, id)}`;
  if (reportOf(input, id)?.present.id === input.target.id) return `${name} stays drained: it runs what failed`;
  return `${name} stays drained: ${isStuck(input, id, row) ? "it could not go back" : "it has not said that it went back"}`;
}
