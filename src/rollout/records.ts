import { z } from "zod";
import { SignedStatement } from "./spec.ts";

// The records of a rollout. The owner's progress, its assignment of each node, and each node's report are registers that merge by their
// highest `epoch` (crdt/merge-kind.ts).

export const updatePhases = [
  "pending",
  "ready",
  "rolling_out",
  "succeeded",
  "failed",
  "cancelled",
  "rolling_back",
  "rolled_back",
] as const;
export const UpdatePhase = z.enum(updatePhases);
export type UpdatePhase = z.infer<typeof UpdatePhase>;

/** Whether the update may have nodes under way. */
export function isRolling(phase: UpdatePhase | undefined): boolean {
  return phase === "rolling_out" || phase === "rolling_back";
}

/** Whether the update is over: only an operator's request or a late report of a node changes it. */
export function hasEnded(phase: UpdatePhase): boolean {
  return !isRolling(phase) && phase !== "pending" && phase !== "ready";
}

export const nodePhases = [
  "pending",
  "preflight",
  "preparing",
  "prepared",
  "draining",
  "activating",
  "rebooting",
  "verifying",
  "succeeded",
  "failed",
  "rolling_back",
  "rolled_back",
  "cancelled",
] as const;
export const NodePhase = z.enum(nodePhases);
export type NodePhase = z.infer<typeof NodePhase>;

export const FailureKind = z.enum([
  "refused",
  "build",
  "drain",
  "activation",
  "reboot",
  "service",
  "gate",
  "unreachable",
  "rollback",
]);
export type FailureKind = z.infer<typeof FailureKind>;
export const FailureRecord = z.object({
  kind: FailureKind,
  message: z.string().max(2_000),
  /** Whether the node could not go back either. */
  stuck: z.boolean().optional(),
});
export type FailureRecord = z.infer<typeof FailureRecord>;

const Epoch = z.int().min(1);
const Ms = z.number();
const Text = z.string();

/** The controller that carries a rollout out, and the {@link OwnershipStatement} that the bastion signed; earlier versions wrote no `signed`. */
export const Owner = z.looseObject({ epoch: Epoch, owner: Text, signed: SignedStatement.optional() });
export type Owner = z.infer<typeof Owner>;

/** Identifies and numbers an owner's order: a node keeps the last token durably, and refuses older ones and another owner's. */
export const FencingToken = z.object({
  name: z.string().max(63),
  epoch: Epoch,
  owner: z.string().max(253),
  generation: z.int().min(1),
  /** The number of the order, counted by the owner for each node apart. */
  seq: z.int().min(1),
});
export type FencingToken = z.infer<typeof FencingToken>;

/** The owner's decision about one node; its phase orders a step of the node (order.ts). */
export const NodeAssignment = z.looseObject({
  epoch: Epoch,
  owner: Text,
  generation: z.int().min(1),
  seq: z.int().min(1),
  phase: NodePhase,
  /** When the phase began, ms since 1970. */
  since: Ms,
  failure: FailureRecord.optional(),
  /** The node was on the target already. */
  untouched: z.boolean().optional(),
  /** The node was drained, so its undrain is due. */
  drained: z.boolean().optional(),
  /**
   * An earlier generation of the update may have left the node otherwise than succeeded: having the target proves
   * nothing.
   */
  unproven: z.boolean().optional(),
  /** While `verifying`: the node was updated and ready, so the bastion is asked to run its hooks. */
  asked: z.boolean().optional(),
});
export type NodeAssignment = z.infer<typeof NodeAssignment>;

/** The owner's record of the whole rollout. */
export const RolloutProgress = z.looseObject({
  epoch: Epoch,
  owner: Text,
  generation: z.int().min(1),
  phase: UpdatePhase,
  /** When the phase began, ms since 1970. */
  since: Ms,
  /** The nodes in groups, fixed at the beginning except after a takeover; a group begins when the one before is done. */
  waves: z.array(z.array(Text)),
  /** Ids in the order in which they were started. */
  started: z.array(Text),
  /** How many of the waves are canaries: the others wait for promotion. */
  canaries: z.int().min(0),
  /** When the canaries were done, ms since 1970. */
  soakSince: Ms.optional(),
  promoted: z.boolean().optional(),
  /** The time of the request whose rollback was carried out; `by itself` if no operator requested it. */
  undone: Text.optional(),
  /** The reason why the update failed, was cancelled or goes back after a failure. */
  reason: Text.optional(),
  /** The reason why the rollout does not continue at the moment. */
  waits: Text.optional(),
});
export type RolloutProgress = z.infer<typeof RolloutProgress>;

export const reportStates = [
  "fenced",
  "preparing",
  "prepared",
  "activating",
  "rebooting",
  "activated",
  "rolling_back",
  "rolled_back",
  "failed",
] as const;

const VersionId = z.string().max(1_000);
/** A version on a node: its id (targetIdOf), its name for people, its generation of the profile. */
const NodeVersion = z.object({ id: VersionId, version: z.string().max(200), generation: z.int().optional() });

/**
 * A node's own report in a rollout. `epoch` counts its reports and is never below its clock (ms since 1970), so it
 * grows even after the node was installed anew.
 */
export const Report = z.looseObject({
  epoch: z.int().min(1),
  /** The last order that the node accepted. */
  fence: FencingToken,
  state: z.enum(reportStates),
  /** The version that runs now; without a generation while it is on trial. */
  present: NodeVersion,
  /** Set when the boot default differs from the running system (modes test and boot). */
  lasting: NodeVersion.optional(),
  /** The version before this update's first generation, which a rollback restores. */
  previous: NodeVersion.optional(),
  /** The generation that the target has, or will have. */
  targetGeneration: z.int().optional(),
  needsReboot: z.boolean().optional(),
  rebootReasons: z.array(z.string().max(500)).max(16).optional(),
  failure: FailureRecord.optional(),
  /** The activation waits only for the bastion's order to hold. */
  waitsFor: z.literal("bastion").optional(),
  /** When the state began, ms since 1970, by the node's clock. */
  at: Ms,
});
export type Report = z.infer<typeof Report>;

/** States of a node at work, which will report again without a new order. */
export const workStates: ReadonlySet<Report["state"]> = new Set([
  "preparing",
  "activating",
  "rebooting",
  "rolling_back",
]);

export const requestActions = ["cancel", "rollback", "promote"] as const;
export type RequestAction = (typeof requestActions)[number];
/** An operator's request about a rollout, made at any controller. */
export const OperatorRequest = z.looseObject({
  generation: z.int().min(1),
  by: Text,
  at: Text,
  /** Whether the rollback ignores maxUnavailable. */
  now: z.boolean().optional(),
});
export type OperatorRequest = z.infer<typeof OperatorRequest>;

/** Approval of one plan, and of no other. */
export const PlanApproval = z.looseObject({ generation: z.int().min(1), hash: Text, by: Text, at: Text });
export type PlanApproval = z.infer<typeof PlanApproval>;

/** The outcome of a hook on the bastion. */
export const HookAnswer = z.looseObject({
  generation: z.int().min(1),
  /** The number of the order for which the hook ran. */
  seq: z.int().min(1),
  /** The epoch and the owner of that order: another owner's order may have the same `seq`. */
  epoch: Epoch,
  owner: Text,
  ok: z.boolean(),
  message: z.string().max(2_000).optional(),
});
export type HookAnswer = z.infer<typeof HookAnswer>;

/** The operator whose process carries out the hooks of an update, the process's machine, and when it began. */
export const Attendance = z.looseObject({ by: Text, host: Text, at: Text });
export type Attendance = z.infer<typeof Attendance>;
