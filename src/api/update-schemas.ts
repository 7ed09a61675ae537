import { z } from "zod";
import { Order } from "#rollout/order.ts";
import { Attendance, FailureRecord, FencingToken, NodePhase, Report, UpdatePhase } from "#rollout/records.ts";
import { Bundle, Sha256, SignedStatement, UpdateName, UpdateSpec } from "#rollout/spec.ts";

const Text = z.string();
/** ISO 8601 in UTC. */
const Time = z.string();

/** An agent's message while a rollout concerns its node: its last report, and the order that it knows. */
export const UpdateExchange = z.object({
  nodeId: z.string(),
  report: z.object(Report.shape).optional(),
  known: FencingToken.optional(),
});
export type UpdateExchange = z.infer<typeof UpdateExchange>;
/** Answered at once when there is an order that the node does not know, else after some seconds. */
export const UpdateAnswer = z.object({
  order: Order.optional(),
  /** Whether the node should ask again at once: a rollout that is not over concerns it. */
  concerned: z.boolean(),
});
export type UpdateAnswer = z.infer<typeof UpdateAnswer>;

/** A part of a bundle that is sent to a controller. */
export const BundlePiece = z.object({
  /** Base64 of at most 512 KiB. */
  data: z.base64().max(720_000),
  offset: z.int().min(0),
  /** Bytes of the whole bundle. */
  size: z.int().positive(),
});
/** `held`: bytes of a bundle that a controller has; `whole`: it has all, with the right checksum. */
export const BundleHeld = z.object({ held: z.int(), whole: z.boolean() });
/** The bundles that a controller has, or has a part of. */
export const BundleList = z.object({ bundles: z.array(BundleHeld.extend({ sha256: Sha256 })) });

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
  /** `none`: it is on the target; `unknown`: a NixOS system that is not built yet. */
  change: z.enum(["none", "update", "downgrade", "unknown"]),
  reboots: z.enum(["no", "yes", "unknown"]),
  rebootReasons: z.array(Text),
  /** Bytes that it needs and has free; undefined: not known. */
  room: z.object({ needed: z.number(), free: z.number().optional() }).optional(),
  /** For controllers: whether replication is healthy. */
  replication: Text.optional(),
  /** The node's group, from 1. */
  wave: z.int().optional(),
  /** Why it cannot be updated. */
  blockers: z.array(Text),
  /** Remarks to read before the update. */
  warnings: z.array(Text),
});
export type PlannedNode = z.infer<typeof PlannedNode>;

export const UpdatePlan = z.object({
  name: Text,
  /** The effect that apply would have. */
  result: z.enum(["created", "updated", "unchanged"]),
  generation: z.int(),
  /** The owner that the bastion signs the update for; of a new one, the controller that answers. */
  owner: z.object({ id: Text, epoch: z.int() }),
  /** An approval is bound to this hash, besides the generation. */
  hash: Text,
  viable: z.boolean(),
  target: Text,
  strategy: Text,
  /** The process that carries out the hooks of the present generation. */
  attendance: Attendance.optional(),
  approval: z.enum(["manual", "automatic"]),
  /** Whether a node reboots; absent while that is unknown: a NixOS system that is not built yet. */
  likelyRequiresReboot: z.boolean().optional(),
  waves: z.array(z.array(Text)),
  nodes: z.array(PlannedNode),
  /** About the update, not one node. */
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
  /** The node's reasons for a reboot, or the parts that stay as they were booted. */
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
  waits: Text.optional(),
  reason: Text.optional(),
  /** The process that carries out the update's hooks. */
  attendance: Attendance.optional(),
  /** The operator who asked for the ended rollback; absent of an automatic one. */
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
  /** The bastion's signed statement: a process that carries out a part of the update trusts this, not the controller's other fields. */
  signed: SignedStatement,
  /** The controller that answers, and the epoch in which it would own the update after a takeover. */
  takeover: z.object({ id: Text, epoch: z.int() }),
  waves: z.array(z.array(Text)),
  nodeStatus: z.array(NodeUpdateView),
});
export type UpdateView = z.infer<typeof UpdateView>;

/** `ownership`: the owner of a new update; for an existing one its present owner, signed anew. */
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
  /** The owner and epoch of the order that this answers. */
  owner: z.object({ id: Text, epoch: z.int().min(1) }).optional(),
  /** The hook that this answers; the hooks of a node are asked one after the other. */
  hook: Text,
  ok: z.boolean(),
  message: z.string().max(2_000).optional(),
});
/** A process on this host begins to carry out an update's hooks, or has ended. */
export const UpdateAttendance = z.object({ host: z.string().min(1).max(253), ended: z.boolean().optional() });
