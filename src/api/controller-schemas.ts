import { z } from "zod";
import { Dot, Id, KeyFingerprint, Name, Reason, Time } from "./schemas.ts";

const Serial = z.string().regex(/^[0-9a-f]{2,40}$/, "is not a serial number in lower-case hex");
const Pem = z.string().max(65_536);

const Alarm = z.object({ code: z.string(), message: z.string() });
export const PeerState = z.enum(["connected", "suspect", "down", "connecting", "refused"]);

/** A controller's own state. */
export const ControllerHealth = z.object({
  ready: z.boolean(),
  /** Why it is not ready. */
  reason: z.string().optional(),
  /** This and all further fields are for operators and controllers: a node learns only whether the controller is ready. */
  controllerId: z.string().default(""),
  dc: z.string().default(""),
  cluster: z.string().default(""),
  version: z.string().default(""),
  nodes: z.object({ total: z.number(), ready: z.number() }).default({ total: 0, ready: 0 }),
  /** The other controllers it replicates with; each must be in step for the cluster to be healthy. */
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
  /** Conditions that an operator should see, and that do not stop the controller from serving: disagreements, clock skew, a full disk. */
  warnings: z.array(z.string()).default([]),
  /** Whether new nodes wait for approval: the strictest of all controllers' settings. */
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
  /** When it was registered. */
  registered: Time,
  /** When it was heard last; empty: never. */
  lastContact: Time,
  requireManualApproval: z.boolean().optional(),
  /** SHA-256 of the registered public key. */
  key: z.string(),
  /** The key that will follow it, while a rotation is under way. */
  nextKey: z.string().optional(),
  certificateExpires: Time.optional(),
  subCa: z.object({ serial: z.string(), notAfter: Time }).optional(),
});
export type ControllerView = z.infer<typeof ControllerView>;
export const ControllerList = z.object({ controllers: z.array(ControllerView) });

/** The record that the sponsor writes BEFORE a new controller starts (docs/replication.md, Coming and going). */
export const ControllerRegistration = z.object({
  spki: KeyFingerprint,
  address: Name.optional(),
  dc: Name.default("DC1"),
  /** A key that is accepted as well, until the controller uses it and is registered with it alone. */
  next: KeyFingerprint.optional(),
});

export const PeerView = z.object({
  controllerId: z.string(),
  dc: z.string(),
  address: z.string(),
  state: PeerState,
  /** Whether neither side lacks a transaction of the other, as far as both have reported. */
  inStep: z.boolean(),
  reason: z.string().optional(),
  /** `behind`: transactions here that the peer has not acknowledged; `ahead`: those that the peer reported and that are not here. */
  behind: z.number(),
  ahead: z.number(),
  rttMs: z.number().optional(),
  clockOffsetMs: z.number().optional(),
  phi: z.number().optional(),
  lastContact: Time,
});
export type PeerView = z.infer<typeof PeerView>;
export const ReplicationStatus = z.object({
  controllerId: z.string(),
  healthy: z.boolean(),
  /** Why it is not healthy, one line each. */
  problems: z.array(z.string()),
  /** Origin (a controller and its random word) to the last transaction that is here. */
  vv: z.record(z.string(), z.number()),
  digest: z.string(),
  registers: z.number(),
  tombstones: z.number(),
  quarantined: z.number(),
  conflicts: z.number(),
  /** Why writes are refused at present; absent: they are not. */
  readOnly: z.string().optional(),
  /** After how many milliseconds that ends by itself, where that is known. */
  readOnlyForMs: z.number().optional(),
  alarms: z.array(Alarm),
  settings: z.array(z.object({ controllerId: z.string(), requireManualApproval: z.boolean() })),
  peers: z.array(PeerView),
});
export type ReplicationStatus = z.infer<typeof ReplicationStatus>;

/** A certificate that was issued outside of this controller, so that its key is known everywhere. */
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
/** `spki` names the key; `serial` names a certificate with that key. */
export const Revocation = z
  .object({ serial: Serial.optional(), spki: KeyFingerprint.optional(), reason: Reason.default("") })
  .refine(({ serial, spki }) => (serial === undefined) !== (spki === undefined), "needs either serial or spki");
export const Revoked = z.object({
  spki: z.string(),
  serials: z.array(z.string()),
  result: z.enum(["created", "unchanged"]),
});

/** A manifest as a replicated record. */
export const ObjectView = z.object({ kind: z.string(), name: z.string(), value: z.unknown(), dot: Dot, at: Time });
export type ObjectView = z.infer<typeof ObjectView>;
export const ObjectList = z.object({ objects: z.array(ObjectView) });
export const ObjectWrite = z.object({ value: z.record(z.string(), z.unknown()) });

/** The group `rotation` of the configuration: the request of `kcore rotate certs` to all nodes. */
export const Rotation = z.looseObject({ nodesEndingBefore: z.iso.datetime() });

/** The caller's nonce, 16 to 64 bytes in base64url: the proof signs it, so an old proof does not fit. */
export const SubCaRequest = z.object({ nonce: z.string().regex(/^[A-Za-z0-9_-]{22,86}$/) });
/** A new sub-CA key's SPKI in base64 DER; `signature` is over `challenge`, which names controller and nonce. */
export const SubCaProof = z.object({
  controllerId: z.string(),
  spki: z.string(),
  challenge: z.string(),
  signature: z.string(),
});
export type SubCaProof = z.infer<typeof SubCaProof>;
/** The same for a controller's own certificate, with the chain that it shows at present: its names are those of the next one. */
export const CertificateProof = SubCaProof.extend({ certificate: Pem });
export const SubCaCertificate = z.object({ certificate: Pem });
export const SubCaInstalled = z.object({ controllerId: z.string(), serial: z.string(), notAfter: Time });

/** One line of a watch, which has changes alone; `value` is null for a deletion. */
export const WatchLine = z.union([
  z.object({ type: z.literal("register"), key: z.string(), value: z.unknown(), dot: z.string() }),
  /** A node's liveness or a peer's state changed; ask again. */
  z.object({ type: z.literal("soft"), about: z.enum(["nodes", "controllers", "conflicts"]), id: z.string() }),
  /** Nothing happened; comes every 15 s, so that silence means a broken line. */
  z.object({ type: z.literal("idle") }),
]);
export type WatchLine = z.infer<typeof WatchLine>;
export const WatchRequest = z.object({ prefixes: z.array(z.string().max(256)).max(16).default([]) });
export type WatchRequest = z.infer<typeof WatchRequest>;

/** Lines of an audit trail as they were written, for a client that verifies the chain itself. */
export const AuditPage = z.object({
  lines: z.array(z.object({ file: z.string(), line: z.number(), text: z.string() })).readonly(),
  /** The number from which to read on; absent when these were the last. */
  next: z.number().optional(),
});

/** The body of a refused request's answer. */
export const Refusal = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  detail: z.string().optional(),
});
export type Refusal = z.infer<typeof Refusal>;

export const Nothing = z.object({});
