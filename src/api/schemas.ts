import { z } from "zod";
import { isIdentityId } from "#pki/identity.ts";
import { RuntimeFacts } from "./runtime-facts.ts";

export const Id = z.string().refine(isIdentityId, "is not an id");
export const Name = z.string().min(1).max(253);
const LabelKey = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._/-]{0,252}$/, "is not a label key");
const Labels = z
  .record(LabelKey, z.string().max(253))
  .refine((labels) => Object.keys(labels).length <= 64, "has more than 64 labels");
/** Lower-case hex SHA-256 of a DER SubjectPublicKeyInfo. */
export const KeyFingerprint = z.string().regex(/^[0-9a-f]{64}$/, "is not a SHA-256 in lower-case hex");
const Base64 = z.base64().max(8192);
/** ISO 8601 in UTC. */
export const Time = z.string();
export const Reason = z.string().max(500);

/** The version of a register as a text; `absent` stands for a register that does not exist. */
export const Dot = z.string().min(1).max(300);

const Disk = z.object({
  path: z.string().max(253),
  /** Bytes. */
  size: z.number(),
  model: z.string().max(253).optional(),
  serial: z.string().max(253).optional(),
  type: z.string().max(32).optional(),
  used: z.boolean().optional(),
});
const Interface = z.object({ name: z.string().max(64), mac: z.string().max(64).optional(), addresses: z.array(Name) });
export const Network = z.object({
  disableVxlan: z.boolean().optional(),
  interfaces: z.array(Interface).max(256).optional(),
});
export const Storage = z.object({
  backend: z.string().max(64).optional(),
  volumeGroup: z.string().max(128).optional(),
  volumePrefix: z.string().max(128).optional(),
  pool: z.string().max(128).optional(),
  datasetPrefix: z.string().max(128).optional(),
  /** Bytes. */
  capacity: z.number().optional(),
  free: z.number().optional(),
  disks: z.array(Disk).max(1024).optional(),
});

/** The version of the last list of revoked keys that the agent received; absent: it keeps none. */
const ToldRevocations = { revocations: z.string().max(64).optional() };

/** An agent's registration. The certificate identifies the node; `nodeId` must agree with it. */
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
  net: Network.optional(),
  storage: Storage.optional(),
  runtime: RuntimeFacts.optional(),
  ...ToldRevocations,
});
export type Registration = z.infer<typeof Registration>;

/** The load of a machine: load average of one minute; bytes of memory and of the fuller disk; free bytes of the Nix store's file system. */
export const Usage = z
  .object({
    load: z.number(),
    memoryUsed: z.number(),
    diskUsed: z.number(),
    diskSize: z.number(),
    storeFree: z.number(),
    /** Seconds for which an order has waited for the updater; absent while no order waits longer than usual. */
    orderUntaken: z.number(),
  })
  .partial();
export type Usage = z.infer<typeof Usage>;
/** A sign of life: soft state, never written to a disk. */
export const Heartbeat = z.object({
  nodeId: Id,
  bootId: z.string().max(64).optional(),
  usage: Usage.optional(),
  /** The node's own health; false shows it as not ready, with the reason. */
  health: z.object({ ok: z.boolean(), reason: Reason.optional() }).optional(),
  ...ToldRevocations,
});
export type Heartbeat = z.infer<typeof Heartbeat>;

export const Approval = z.enum(["pending", "approved", "rejected"]);
export type Approval = z.infer<typeof Approval>;
/** `unknown`: expected by a manifest or the roster, but it has never registered. */
export const NodeStatus = z.enum(["pending", "ready", "not-ready", "rejected", "unknown"]);
export type NodeStatus = z.infer<typeof NodeStatus>;

/** The controller's answer to a registration or a heartbeat: the node's approval, and requests of the cluster to its agent. */
export const HeartbeatReply = z.object({
  nodeId: z.string(),
  approval: Approval,
  status: NodeStatus,
  controllerId: z.string(),
  /** Endpoints of all controllers known here, for fail-over; this one first. */
  controllers: z.array(z.string()).default([]),
  /** An operator wants certificates that end before this to be renewed now, even fresh ones. */
  renewEndingBefore: Time.optional(),
  /** The revoked keys of operators and controllers, if the agent has another version of the list. */
  revoked: z.object({ version: z.string().max(64), keys: z.array(KeyFingerprint) }).optional(),
  /** A rollout concerns this node: it should ask for its orders (exchangeUpdate). */
  concerned: z.boolean().optional(),
});
export type HeartbeatReply = z.infer<typeof HeartbeatReply>;

/** A challenge for one renewal: single use, this node only, until `expires`. */
export const RenewChallenge = z.object({ nonce: z.string(), challenge: z.string(), expires: Time });
export type RenewChallenge = z.infer<typeof RenewChallenge>;
/** A new key for the same node: its raw SPKI and, in base64, its ECDSA-SHA256 signature over the whole challenge (S-14). */
export const Renewal = z.object({ nodeId: Id, nonce: z.string().max(128), spki: Base64, signature: Base64 });
export type Renewal = z.infer<typeof Renewal>;
/** Leaf and sub-CA in PEM. */
export const Renewed = z.object({ certificate: z.string(), serial: z.string(), notAfter: Time });
export type Renewed = z.infer<typeof Renewed>;

export const Taint = z.object({
  key: LabelKey,
  value: z.string().max(253).default(""),
  effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]),
});
export type Taint = z.infer<typeof Taint>;
/** An operator's settings of a node, before and after it registers. */
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
  /** As it registered; before that, as it is expected. */
  hostname: z.string(),
  address: z.string(),
  dc: z.string(),
  /** The roles of its registration, of its expectation and of the role registers together. */
  roles: z.array(z.string()),
  labels: z.record(z.string(), z.string()),
  taints: z.array(Taint).default([]),
  cpu: z.number(),
  memory: z.number(),
  version: z.string(),
  approval: Approval,
  status: NodeStatus,
  /** Why it is not ready. */
  reason: z.string().optional(),
  registered: Time,
  lastSeen: Time,
  /** From the node's last heartbeat. */
  usage: Usage.optional(),
  certificateExpires: Time,
  /** SHA-256 of its public key; empty before it registers. */
  key: z.string(),
  /** Open conflicts about this node. */
  conflicts: z.number().default(0),
  /** Other nodes of the same host name; the first writer keeps the name. */
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
  /** Of the holder. */
  id: z.string(),
  issuer: z.string(),
  notAfter: Time,
  issued: Time,
  status: CertificateStatus,
  /** Whether it is the one that its holder uses at present. */
  current: z.boolean().default(false),
  revoked: z.object({ at: Time, reason: z.string(), by: z.string() }).optional(),
});
export type CertificateView = z.infer<typeof CertificateView>;
export const CertificateList = z.object({ certificates: z.array(CertificateView) });

/** One register: its value, its writer, its time and its version. */
export const RegisterView = z.object({
  key: z.string(),
  value: z.unknown(),
  dot: Dot,
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
  /** The newest that lost. */
  loser: ConflictSide,
  /** Older ones that lost as well. */
  others: z.array(ConflictSide).optional(),
});
export type ConflictView = z.infer<typeof ConflictView>;
export const ConflictList = z.object({
  conflicts: z.array(ConflictView),
  /** Nodes that share a host name: found when asked, not stored. */
  names: z.array(z.object({ hostname: z.string(), nodes: z.array(z.string()), keptBy: z.string() })).default([]),
});
export type ConflictList = z.infer<typeof ConflictList>;

/** The keys that a controller wrote last, the oldest write first. Values are left out: they may be secret. */
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
  net: Network.optional(),
  storage: Storage.optional(),
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
export const Written = z.object({
  /** The effect of the write; `unchanged`: the register has this value already, so that nothing is written and no dot spent. */
  result: z.enum(["created", "updated", "unchanged", "deleted"]),
  dot: z.string(),
});
export type Written = z.infer<typeof Written>;
