import { z } from "zod";
import { Order } from "#rollout/order.ts";
import { Attendance, FailureRecord, FencingToken, NodePhase, Report, UpdatePhase } from "#rollout/records.ts";
import { Bundle, BundleSha256, SignedStatement, UpdateName, UpdateSpec } from "#rollout/spec.ts";

const Text = z.string();
/** ISO 8601 in UTC. */
const Time = z.string();

/** An agent's message while a rollout concerns its node: the updater's last report, and the token of the order that the agent has. */
export const UpdateExchange = z.object({
  nodeId: z.string(),
  report: z.object(Report.shape).optional(),
  known: FencingToken.optional(),
});
export type UpdateExchange = z.infer<typeof UpdateExchange>;
/** A controller answers at once with an order that the node does not know, or if no rollout concerns the node; else after some seconds. */
export const UpdateAnswer = z.object({
  order: Order.optional(),
  /** Whether the node should ask again at once, because an unfinished rollout concerns it. */
  concerned: z.boolean(),
});
export type UpdateAnswer = z.infer<typeof UpdateAnswer>;

/** A part of a bundle that is sent to a controller. */
export const BundlePiece = z.object({
  /** Room for 512 KiB in base64. */
  data: z.base64().max(720_000),
  offset: z.int().min(0),
  /** Bytes of the whole bundle. */
  size: z.int().positive(),
});
/** `held`: bytes of a bundle that a controller has; `whole`: it has all, with the right checksum. */
export const BundleHeld = z.object({ held: z.int(), whole: z.boolean() });
/** The bundles that a controller has, or has a part of. */
export const BundleList = z.object({ bundles: z.array(BundleHeld.extend({ sha256: BundleSha256 })) });

export const UpdateDraft = z.object({ name: UpdateName, spec: UpdateSpec, bundle: Bundle.optional() });
export type UpdateDraft = z.infer<typeof UpdateDraft>;
/** With `again`, an equal update that has ended gets a new generation that does the same once more. */
export const UpdatePlanRequest = UpdateDraft.extend({ again: z.boolean().optional() });

/** The effect of an update on one node. */
export const PlannedNode = z.object({
  id: Text,
  hostname: Text,
  dc: Text,
  roles: z.array(Text),
  ready: z.boolean(),
  approval: Text,
  lastSeen: Time,
  currentVersion: Text,
  currentGeneration: z.int().optional(),
  /** `none`: the node is on the target; `unknown`: the target is a NixOS system. */
  change: z.enum(["none", "update", "downgrade", "unknown"]),
  reboots: z.enum(["no", "yes", "unknown"]),
  rebootReasons: z.array(Text),
  /** Bytes that the update needs on the node, and its free bytes; absent: unknown. */
  room: z.object({ needed: z.number(), free: z.number().optional() }).optional(),
  /** For controllers: whether replication is healthy. */
  replication: Text.optional(),
  /** The node's group, from 1. */
  wave: z.int().optional(),
  /** The reasons why the node cannot be updated. */
  blockers: z.array(Text),
  warnings: z.array(Text),
});
export type PlannedNode = z.infer<typeof PlannedNode>;

export const UpdatePlan = z.object({
  name: Text,
  /** The effect that apply would have. */
  result: z.enum(["created", "updated", "unchanged"]),
  generation: z.int(),
  /** The owner for whom the bastion signs the update; for a new update, the controller that answers. */
  owner: z.object({ id: Text, epoch: z.int() }),
  /** An approval is bound to this hash and to the generation. */
  hash: Text,
  viable: z.boolean(),
  target: Text,
  strategy: Text,
  /** The process that carries out the hooks of the present generation. */
  attendance: Attendance.optional(),
  approval: z.enum(["manual", "automatic"]),
  /** Whether any node reboots; absent if that is unknown. */
  likelyRequiresReboot: z.boolean().optional(),
  waves: z.array(z.array(Text)),
  nodes: z.array(PlannedNode),
  /** Reasons why the whole update cannot be applied. */
  blockers: z.array(Text),
  warnings: z.array(Text),
});
export type UpdatePlan = z.infer<typeof UpdatePlan>;

export const UpdateApplied = z.object({
  result: z.enum(["created", "updated", "unchanged"]),
  generation: z.int(),
  hash: Text,
  approvalStatus: z.enum(["awaiting_approval", "approved"]),
});

export const NodeUpdateView = z.object({
  id: Text,
  hostname: Text,
  dc: Text,
  roles: z.array(Text),
  phase: NodePhase,
  wave: z.int().optional(),
  ready: z.boolean(),
  currentVersion: Text,
  targetVersion: Text,
  currentGeneration: z.int().optional(),
  targetGeneration: z.int().optional(),
  requiresReboot: z.boolean().optional(),
  /** The node's reasons for a reboot; without a reboot, the parts that stay as they were booted. */
  rebootReasons: z.array(Text).optional(),
  failure: FailureRecord.optional(),
  /** A hook that the bastion should run now: `drain`, `undrain`, `gate NAME`. */
  hook: Text.optional(),
  /** The number of the node's order, which a hook's answer must name. */
  seq: z.int().optional(),
  since: Time,
});
export type NodeUpdateView = z.infer<typeof NodeUpdateView>;

export const UpdateSummary = z.object({
  name: Text,
  generation: z.int(),
  phase: UpdatePhase,
  approvalStatus: z.enum(["awaiting_approval", "approved"]),
  approvalPolicy: Text,
  target: Text,
  strategy: Text,
  nodes: z.int(),
  done: z.int(),
  failed: z.int(),
  owner: z.object({ id: Text, epoch: z.int(), endpoint: Text.optional(), heard: z.boolean() }),
  /** The condition that the update waits for. */
  waits: Text.optional(),
  reason: Text.optional(),
  /** The process that carries out the update's hooks. */
  attendance: Attendance.optional(),
  /** The operator who asked for the finished rollback; absent for an automatic rollback. */
  rolledBackBy: Text.optional(),
  createdAt: Time,
  updatedAt: Time,
});
export type UpdateSummary = z.infer<typeof UpdateSummary>;

export const UpdateList = z.object({ updates: z.array(UpdateSummary) });

export const UpdateView = UpdateSummary.extend({
  hash: Text,
  approvedBy: Text.optional(),
  spec: UpdateSpec,
  bundle: Bundle.optional(),
  /** The bastion's signed statement. A process that carries out a part of the update trusts it, not the controller's other fields. */
  signed: SignedStatement,
  /** The controller that answers, and the epoch in which it would own the update after a takeover. */
  takeover: z.object({ id: Text, epoch: z.int() }),
  waves: z.array(z.array(Text)),
  nodeStatus: z.array(NodeUpdateView),
});
export type UpdateView = z.infer<typeof UpdateView>;

/** `ownership`: the signed owner of a new update; for an existing update its present owner, signed anew. */
export const UpdateApply = z.object({
  signed: SignedStatement,
  ownership: SignedStatement,
  again: z.boolean().optional(),
});
export const UpdateApproval = z.object({ generation: z.int().min(1), hash: z.string().max(128) });
export const OperatorRequestBody = z.object({ now: z.boolean().optional() });
export const UpdateTakeover = z.object({ ownership: SignedStatement });
export const UpdateTaken = z.object({ epoch: z.int(), owner: Text });
export const UpdateHookAnswer = z.object({
  node: Text,
  generation: z.int().min(1),
  seq: z.int().min(1),
  /** The owner and epoch of the order that asked for the hook. */
  owner: z.object({ id: Text, epoch: z.int().min(1) }).optional(),
  /** The hook that has run: a node's hooks run one after the other, each with its own answer. */
  hook: Text,
  ok: z.boolean(),
  message: z.string().max(2_000).optional(),
});
/** A process on this host begins to carry out an update's hooks, or has ended. */
export const UpdateAttendance = z.object({ host: z.string().min(1).max(253), ended: z.boolean().optional() });
