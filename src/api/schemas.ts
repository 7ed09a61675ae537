import { z } from "zod";
import { isIdentityId } from "#pki/identity.ts";
import { RuntimeFacts } from "./runtime-facts.ts";

export const Id = z.string().refine(isIdentityId, "is not an id");
export const Name = z.string().min(1).max(253);
const LabelKey = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$/, "is not a label key");
export const Labels = z
  .record(LabelKey, z.string().max(253))
  .refine((labels) => Object.keys(labels).length <= 64, "has more than 64 labels");
/** Lower-case hex SHA-256 of a DER SubjectPublicKeyInfo. */
export const KeyFingerprint = z.string().regex(/^[0-9a-f]{64}$/, "is not a SHA-256 in lower-case hex");
const Base64 = z.base64().max(8192);
/** ISO 8601 in UTC. */
export const Time = z.string();
export const Reason = z.string().max(500);

/** The version of a register, `SEQ@ORIGIN`. */
export const DotText = z.string().min(1).max(300);

const DiskFacts = z.object({
  path: z.string().max(253),
  /** Bytes. */
  size: z.number(),
  model: z.string().max(253).optional(),
  serial: z.string().max(253).optional(),
  type: z.string().max(32).optional(),
  used: z.boolean().optional(),
});
const Interface = z.object({ name: z.string().max(64), mac: z.string().max(64).optional(), addresses: z.array(Name) });
export const NetworkFacts = z.object({
  disableVxlan: z.boolean().optional(),
  interfaces: z.array(Interface).max(256).optional(),
});
export type NetworkFacts = z.infer<typeof NetworkFacts>;
export const StorageFacts = z.object({
  backend: z.string().max(64).optional(),
  volumeGroup: z.string().max(128).optional(),
  volumePrefix: z.string().max(128).optional(),
  pool: z.string().max(128).optional(),
  datasetPrefix: z.string().max(128).optional(),
  /** Bytes. */
  capacity: z.number().optional(),
  free: z.number().optional(),
  disks: z.array(DiskFacts).max(1024).optional(),
});
export type StorageFacts = z.infer<typeof StorageFacts>;

/** The version of the list of revoked keys that the agent has; absent from agents that keep no list. */
const KnownRevocations = { revocations: z.string().max(64).optional() };

/** An agent's registration. `nodeId` must agree with the certificate, which identifies the node. */
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
  /** Changes with every boot of the machine. */
  bootId: z.string().max(64).optional(),
  net: NetworkFacts.optional(),
  storage: StorageFacts.optional(),
  runtime: RuntimeFacts.optional(),
  ...KnownRevocations,
});
export type Registration = z.infer<typeof Registration>;

/** The load of a machine; memory and disks in bytes. */
export const NodeUsage = z
  .object({
    /** The load average of one minute. */
    load: z.number(),
    memoryUsed: z.number(),
    /** Of the file systems of `/` and of the volumes, the fuller one. */
    diskUsed: z.number(),
    diskSize: z.number(),
    /** Free bytes of the Nix store's file system. */
    storeFree: z.number(),
    /** Seconds for which an order has waited for the updater; absent unless one waits unusually long. */
    orderUntaken: z.number(),
  })
  .partial();
export type NodeUsage = z.infer<typeof NodeUsage>;
/** A node's sign of life: soft state, which is in no journal. */
export const Heartbeat = z.object({
  nodeId: Id,
  bootId: z.string().max(64).optional(),
  usage: NodeUsage.optional(),
  /** The node's own health; `ok: false` shows the node as not ready, with the reason. */
  health: z.object({ ok: z.boolean(), reason: Reason.optional() }).optional(),
  ...KnownRevocations,
});
export type Heartbeat = z.infer<typeof Heartbeat>;

export const Approval = z.enum(["pending", "approved", "rejected"]);
export type Approval = z.infer<typeof Approval>;
/** `unknown`: a manifest or the roster expects the node, but it has never registered. */
export const NodeStatus = z.enum(["pending", "ready", "not-ready", "rejected", "unknown"]);
export type NodeStatus = z.infer<typeof NodeStatus>;

/** The controller's answer to a registration or a heartbeat: the node's approval, and requests of the cluster to its agent. */
export const HeartbeatReply = z.object({
  nodeId: z.string(),
  approval: Approval,
  status: NodeStatus,
  controllerId: z.string(),
  /** Endpoints of all controllers for fail-over, first the one that answers. */
  controllers: z.array(z.string()).default([]),
  /** The agent should renew a certificate that ends before this time, even a fresh one: an operator asked for it. */
  renewEndingBefore: Time.optional(),
  /** The revoked keys of operators and controllers, if the agent has another version of the list. */
  revoked: z.object({ version: z.string().max(64), keys: z.array(KeyFingerprint) }).optional(),
  /** A rollout concerns this node: it should ask for its orders (exchangeUpdate). */
  concerned: z.boolean().optional(),
});
export type HeartbeatReply = z.infer<typeof HeartbeatReply>;

/** A challenge for one renewal of this node's certificate, valid until `expires`. */
export const RenewChallenge = z.object({ nonce: z.string(), challenge: z.string(), expires: Time });
export type RenewChallenge = z.infer<typeof RenewChallenge>;
/** A new key for the same node: its SPKI (DER) and its ECDSA-SHA256 signature over the whole challenge, both in base64 (S-14). */
export const Renewal = z.object({ nodeId: Id, nonce: z.string().max(128), spki: Base64, signature: Base64 });
export type Renewal = z.infer<typeof Renewal>;
/** The renewed certificate; `certificate`: leaf and sub-CA in PEM. */
export const Renewed = z.object({ certificate: z.string(), serial: z.string(), notAfter: Time });
export type Renewed = z.infer<typeof Renewed>;

export const Taint = z.object({
  key: LabelKey,
  value: z.string().max(253).default(""),
  effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
});
export type Taint = z.infer<typeof Taint>;
/** A node as the roster or a manifest expects it, before and after it registers. */
export const Expected = z.object({
  name: Name,
  roles: z.array(Name).max(32),
  dc: Name.default("DC1"),
  address: Name.optional(),
  source: z.enum(["manifest", "roster"]),
});
export type Expected = z.infer<typeof Expected>;

/** A node as the controllers know it. Times are ISO 8601 in UTC, and empty for a node that has never registered. */
export const NodeView = z.object({
  id: z.string(),
  /** From its registration; before that, from its expectation. */
  hostname: z.string(),
  address: z.string(),
  dc: z.string(),
  /** From its registration and its expectation. */
  roles: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  taints: z.array(Taint).default([]),
  cpu: z.number(),
  memory: z.number(),
  version: z.string(),
  approval: Approval,
  status: NodeStatus,
  /** The reason why it is not ready. */
  reason: z.string().optional(),
  registered: Time,
  lastSeen: Time,
  /** From the node's last heartbeat. */
  usage: NodeUsage.optional(),
  certificateExpires: Time,
  /** SHA-256 of its public key; empty before it registers. */
  key: z.string(),
  /** Open conflicts about this node. */
  conflicts: z.number().default(0),
  /** Ids of up to eight other nodes with this host name (`with`), and whether this node keeps the name, as the earliest does. */
  nameConflict: z.object({ with: z.array(z.string()), keepsName: z.boolean() }).optional(),
});
export type NodeView = z.infer<typeof NodeView>;

export const NodeList = z.object({ nodes: z.array(NodeView) });

export const CertificateStatus = z.enum(["active", "expired", "revoked"]);
export const CertificateView = z.object({
  serial: z.string(),
  /** SHA-256 of the public key. */
  spki: z.string(),
  role: z.enum(["controller", "node", "operator", "sub-ca"]),
  /** The holder's id. */
  id: z.string(),
  issuer: z.string(),
  notAfter: Time,
  issued: Time,
  status: CertificateStatus,
  /** Whether its holder uses it at present; known of nodes and sub-CAs alone. */
  current: z.boolean().default(false),
  revoked: z.object({ at: Time, reason: z.string(), by: z.string() }).optional(),
});
export type CertificateView = z.infer<typeof CertificateView>;
export const CertificateList = z.object({ certificates: z.array(CertificateView) });

/** One register: its value, version, time and writer. */
export const RegisterView = z.object({
  key: z.string(),
  value: z.unknown(),
  dot: DotText,
  at: Time,
  origin: z.string(),
});
export type RegisterView = z.infer<typeof RegisterView>;

const ConflictSide = z.object({ value: z.unknown(), dot: z.string(), origin: z.string(), at: Time });
export const ConflictView = z.object({
  id: z.string(),
  key: z.string(),
  at: Time,
  winner: ConflictSide,
  /** The newest of the losing values. */
  loser: ConflictSide,
  /** Older losing values. */
  others: z.array(ConflictSide).optional(),
});
export type ConflictView = z.infer<typeof ConflictView>;
export const ConflictList = z.object({
  conflicts: z.array(ConflictView),
  /** Nodes that share a host name, found for each request. */
  names: z.array(z.object({ hostname: z.string(), nodes: z.array(z.string()), keptBy: z.string() })).default([]),
});
export type ConflictList = z.infer<typeof ConflictList>;

/** The last writes of a controller, the oldest first, without the values, which may be secret. */
export const WriteList = z.object({
  writes: z.array(z.object({ key: z.string(), at: Time, isDeleted: z.boolean(), dot: z.string() })),
});
export type WriteList = z.infer<typeof WriteList>;

/** A node with all its registers. */
export const NodeDetail = NodeView.extend({
  expected: Expected.optional(),
  approvalEpoch: z.number().default(0),
  approvalBy: z.string().optional(),
  approvalReason: z.string().optional(),
  net: NetworkFacts.optional(),
  storage: StorageFacts.optional(),
  certificates: z.array(CertificateView).default([]),
  /** All of its registers, ordered by key, for `-o yaml` and `describe`. */
  registers: z.array(RegisterView).default([]),
  openConflicts: z.array(ConflictView).default([]),
});
export type NodeDetail = z.infer<typeof NodeDetail>;

export const ApprovalChange = z.object({ reason: Reason.optional() });
export const LabelsChange = z.object({
  set: Labels.default({}),
  remove: z.array(LabelKey).max(64).default([]),
});
export const TaintsChange = z.object({
  set: z.array(Taint).max(64).default([]),
  remove: z.array(LabelKey).max(64).default([]),
});
export const Removal = z.object({ reason: Reason.optional() });
export const WriteResult = z.object({
  /** `unchanged`: the register had this value already, so nothing was written and `dot` is the old one. */
  result: z.enum(["created", "updated", "unchanged", "deleted"]),
  dot: z.string(),
});
export type WriteResult = z.infer<typeof WriteResult>;
