import { z } from "zod";
import { DotText, Id, KeyFingerprint, Name, Reason, Time } from "./schemas.ts";

const Serial = z.string().regex(/^[0-9a-f]{2,40}$/, "is not a serial number in lower-case hex");
const Pem = z.string().max(65_536);

const Alarm = z.object({ code: z.string(), message: z.string() });
export const PeerState = z.enum(["connected", "suspect", "down", "connecting", "refused"]);

export const ControllerHealth = z.object({
  /** The only field that a node gets. */
  ready: z.boolean(),
  /** The reason why it is not ready. */
  reason: z.string().optional(),
  controllerId: z.string().default(""),
  dc: z.string().default(""),
  cluster: z.string().default(""),
  version: z.string().default(""),
  nodes: z.object({ total: z.number(), ready: z.number() }).default({ total: 0, ready: 0 }),
  /** The other controllers; the cluster is healthy only if each is in step. */
  peers: z
    .array(
      z.object({
        controllerId: z.string(),
        address: z.string().default(""),
        inStep: z.boolean(),
        reason: z.string().optional(),
      }),
    )
    .default([]),
  /** Conditions that an operator should see although the controller still serves: disagreements, clock skew, a full disk. */
  warnings: z.array(z.string()).default([]),
  /** Whether new nodes wait for approval: true if any controller's setting says so. */
  requireManualApproval: z.boolean().default(false),
});
export type ControllerHealth = z.infer<typeof ControllerHealth>;

export const ControllerView = z.object({
  controllerId: z.string(),
  dc: z.string(),
  /** `host:port`; empty while none is known. */
  address: z.string(),
  version: z.string(),
  /** As seen by the controller that answers; `self` for itself. */
  state: z.union([PeerState, z.literal("self")]),
  /** The time of its registration. */
  registered: Time,
  /** The time of its last message; empty: never. */
  lastContact: Time,
  requireManualApproval: z.boolean().optional(),
  /** SHA-256 of the registered public key. */
  key: z.string(),
  /** The key that a rotation under way gives it next. */
  nextKey: z.string().optional(),
  certificateExpires: Time.optional(),
  subCa: z.object({ serial: z.string(), notAfter: Time }).optional(),
});
export type ControllerView = z.infer<typeof ControllerView>;
export const ControllerList = z.object({ controllers: z.array(ControllerView) });

/** The record that a controller of the cluster writes before a new controller starts (docs/replication.md, Coming and going). */
export const ControllerRegistration = z.object({
  spki: KeyFingerprint,
  address: Name.optional(),
  dc: Name.default("DC1"),
  /** A second accepted key, for a rotation. */
  next: KeyFingerprint.optional(),
});

export const PeerView = z.object({
  controllerId: z.string(),
  dc: z.string(),
  address: z.string(),
  state: PeerState,
  /** Whether the peer is connected, heard, ready, and at most 1,000 transactions apart. */
  inStep: z.boolean(),
  reason: z.string().optional(),
  /** Transactions here that the peer has not acknowledged. */
  behind: z.number(),
  /** Transactions that the peer reported and that are missing here. */
  ahead: z.number(),
  rttMs: z.number().optional(),
  clockOffsetMs: z.number().optional(),
  phi: z.number().optional(),
  lastContact: Time,
});
export type PeerView = z.infer<typeof PeerView>;
export const ReplicationView = z.object({
  controllerId: z.string(),
  healthy: z.boolean(),
  /** The reasons why it is not healthy, one line each. */
  problems: z.array(z.string()),
  /** The version vector: for each origin the number of its last transaction here. */
  vv: z.record(z.string(), z.number()),
  digest: z.string(),
  registers: z.number(),
  tombstones: z.number(),
  quarantined: z.number(),
  conflicts: z.number(),
  /** The reason why writes are refused at present; absent: they are accepted. */
  readOnly: z.string().optional(),
  /** Milliseconds until writes are accepted again, if that is known. */
  readOnlyForMs: z.number().optional(),
  alarms: z.array(Alarm),
  settings: z.array(z.object({ controllerId: z.string(), requireManualApproval: z.boolean() })),
  peers: z.array(PeerView),
});
export type ReplicationView = z.infer<typeof ReplicationView>;

/** A certificate that the bastion issued, to be recorded, so that every controller knows its key. */
export const CertificateRecord = z.object({
  serial: Serial,
  spki: KeyFingerprint,
  role: z.enum(["controller", "node", "operator", "sub-ca"]),
  id: Id,
  /** The issuing CA's serial number or name. */
  issuer: z.string().min(1).max(253),
  notAfter: z.iso.datetime(),
});
export type CertificateRecord = z.infer<typeof CertificateRecord>;
/** The key to revoke, by itself (`spki`) or by a certificate with it (`serial`). */
export const Revocation = z
  .object({ serial: Serial.optional(), spki: KeyFingerprint.optional(), reason: Reason.default("") })
  .refine(({ serial, spki }) => (serial === undefined) !== (spki === undefined), "needs either serial or spki");
export const RevokeResult = z.object({
  spki: z.string(),
  serials: z.array(z.string()),
  result: z.enum(["created", "unchanged"]),
});

/** A replicated manifest. */
export const ObjectView = z.object({ kind: z.string(), name: z.string(), value: z.unknown(), dot: DotText, at: Time });
export type ObjectView = z.infer<typeof ObjectView>;
export const ObjectList = z.object({ objects: z.array(ObjectView) });
export const ObjectWrite = z.object({ value: z.record(z.string(), z.unknown()) });

/** The configuration's group `rotation`: `kcore rotate certs` asks nodes to renew certificates that end before this time. */
export const Rotation = z.looseObject({ nodesEndingBefore: z.iso.datetime() });

/** Asks a controller for a new key and its proof. The proof signs the caller's nonce (16 to 64 bytes, base64url), so an old proof does not fit. */
export const KeyRequest = z.object({ nonce: z.string().regex(/^[A-Za-z0-9_-]{22,86}$/) });
/** The SPKI (base64 DER) of a new sub-CA key, with its signature over `challenge`, which names the controller and the nonce. */
export const SubCaProof = z.object({
  controllerId: z.string(),
  spki: z.string(),
  challenge: z.string(),
  signature: z.string(),
});
export type SubCaProof = z.infer<typeof SubCaProof>;
/** As SubCaProof, for a controller's own certificate. `certificate`: its present chain, whose names the next certificate gets. */
export const CertificateProof = SubCaProof.extend({ certificate: Pem });
export const SubCaCertificate = z.object({ certificate: Pem });
export const SubCaInstalled = z.object({ controllerId: z.string(), serial: z.string(), notAfter: Time });

/** One line of a watch, which reports changes alone; `value` is null for a deletion. */
export const WatchLine = z.union([
  z.object({ type: z.literal("register"), key: z.string(), value: z.unknown(), dot: z.string() }),
  /** A node's liveness or a peer's state changed: the client should ask for it. */
  z.object({ type: z.literal("soft"), about: z.enum(["nodes", "controllers", "conflicts"]), id: z.string() }),
  /** Sent every 15 s, so that silence means a broken connection. */
  z.object({ type: z.literal("idle") }),
]);
export type WatchLine = z.infer<typeof WatchLine>;
export const WatchRequest = z.object({ prefixes: z.array(z.string().max(256)).max(16).default([]) });
export type WatchRequest = z.infer<typeof WatchRequest>;

/** Lines of an audit trail as they were written, for a client that verifies the chain itself. */
export const AuditPage = z.object({
  lines: z.array(z.object({ file: z.string(), line: z.number(), text: z.string() })).readonly(),
  /** The first entry of the next page; absent on the last page. */
  next: z.number().optional(),
});

export const RefusalBody = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  detail: z.string().optional(),
});
export type RefusalBody = z.infer<typeof RefusalBody>;

export const Nothing = z.object({});
