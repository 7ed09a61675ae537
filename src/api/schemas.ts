import { z } from "zod";
import { isIdentityId } from "#pki/identity.ts";

const Id = z.string().refine(isIdentityId, "is not a node id");
const Name = z.string().min(1).max(253);
const LabelKey = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$/, "is not a label key");
const Labels = z
  .record(LabelKey, z.string().max(253))
  .refine((labels) => Object.keys(labels).length <= 64, "has more than 64 labels");

/** What an agent tells when it registers. Who it is comes from its certificate; `nodeId` must agree with that. */
export const Registration = z.object({
  nodeId: Id,
  hostname: Name,
  address: Name,
  /** Cores. */
  cpu: z.int().min(1).max(100_000),
  /** Bytes. */
  memory: z.int().min(0),
  labels: Labels.default({}),
  dc: Name.default("DC1"),
  roles: z.array(Name).max(32).default([]),
  version: Name,
});
export type Registration = z.infer<typeof Registration>;

export const Heartbeat = z.object({ nodeId: Id });

export const Approval = z.enum(["pending", "approved", "rejected"]);
export type Approval = z.infer<typeof Approval>;
export const NodeStatus = z.enum(["pending", "ready", "not-ready", "rejected"]);
export type NodeStatus = z.infer<typeof NodeStatus>;

/** What a node is told about itself. */
export const Standing = z.object({
  nodeId: z.string(),
  approval: Approval,
  status: NodeStatus,
  controllerId: z.string(),
});
export type Standing = z.infer<typeof Standing>;

/** A node as the controllers know it. Times are ISO 8601 in UTC. */
export const NodeView = z.object({
  id: z.string(),
  hostname: z.string(),
  address: z.string(),
  dc: z.string(),
  roles: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  cpu: z.number(),
  memory: z.number(),
  version: z.string(),
  approval: Approval,
  status: NodeStatus,
  /** Why it is not ready. */
  reason: z.string().optional(),
  registered: z.string(),
  lastSeen: z.string(),
  certificateExpires: z.string(),
  /** SHA-256 of its public key. */
  key: z.string(),
});
export type NodeView = z.infer<typeof NodeView>;

export const NodeList = z.object({ nodes: z.array(NodeView) });

/** A controller's own state. */
export const ControllerHealth = z.object({
  controllerId: z.string(),
  dc: z.string(),
  cluster: z.string(),
  version: z.string(),
  ready: z.boolean(),
  /** Why it is not ready. */
  reason: z.string().optional(),
  nodes: z.object({ total: z.number(), ready: z.number() }),
  /** The other controllers it replicates with; each must be in step for the cluster to be healthy. */
  peers: z.array(z.object({ controllerId: z.string(), inStep: z.boolean(), reason: z.string().optional() })),
});
export type ControllerHealth = z.infer<typeof ControllerHealth>;

/** How a refusal is told. */
export const Refusal = z.object({ code: z.string(), message: z.string(), hint: z.string().optional() });
export type Refusal = z.infer<typeof Refusal>;

export const Nothing = z.object({});
