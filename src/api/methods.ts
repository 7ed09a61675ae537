import { z } from "zod";
import type { MemberRole } from "#pki/identity.ts";
import * as c from "./controller-schemas.ts";
import { VmList } from "./record-schemas.ts";
import * as s from "./schemas.ts";
import * as u from "./update-schemas.ts";

export interface Method<Body extends z.ZodType = z.ZodType, Reply extends z.ZodType = z.ZodType> {
  readonly verb: "GET" | "POST";
  /** `{id}` stands for one path segment, percent-encoded. */
  readonly path: string;
  /** The only roles that may ask; a client without a certificate may not (S-16). */
  readonly roles: readonly MemberRole[];
  /** A node may ask this only about itself: the `{id}`, or the body's nodeId, must be its certificate's (S-12). */
  readonly ownNodeOnly?: true;
  /** A node must be approved to ask this; other roles are not affected. */
  readonly approvedOnly?: true;
  /** Answered while the controller is still joining, too. */
  readonly whileJoining?: true;
  /** Answered also to a rejected node, which must be able to learn that it is rejected. */
  readonly whileRejected?: true;
  /**
   * Whether a call leaves a line in the controller's audit; by default every POST does. `whole`: calls that send a piece of a bundle do so
   * only if they complete it or are refused.
   */
  readonly audit?: boolean | "whole";
  /**
   * The form of an answer that is not one short JSON document: a long list, sent as it is made; text; lines of JSON (`reply` is a line);
   * bytes; another protocol.
   */
  readonly form?: "list" | "text" | "lines" | "bytes" | "stream";
  readonly body: Body;
  readonly reply: Reply;
}

const everyone = ["controller", "node", "operator"] as const;
const operators = ["operator"] as const;
const readers = ["controller", "operator"] as const;

/** A method by which a node reports or asks about itself; other nodes are refused. */
function ofNode<Body extends z.ZodType, Reply extends z.ZodType, const More extends Partial<Method>>(
  path: string,
  body: Body,
  reply: Reply,
  more: More = {} as More,
) {
  return { verb: "POST", path, roles: ["node"] as const, ownNodeOnly: true, body, reply, ...more } as const;
}

/** A GET method. */
function read<Reply extends z.ZodType, const More extends Partial<Method>>(
  path: string,
  reply: Reply,
  more: More = {} as More,
) {
  return { verb: "GET", path, roles: readers, body: c.Nothing, reply, ...more } as const;
}

/** A POST method for operators. */
function change<Body extends z.ZodType, Reply extends z.ZodType = typeof s.WriteResult>(
  path: string,
  body: Body,
  reply: Reply = s.WriteResult as unknown as Reply,
) {
  return { verb: "POST", path, roles: operators, body, reply } as const;
}

const always = { roles: everyone, whileJoining: true, whileRejected: true } as const;

/** The protocol that controllers switch to; its number changes when the framing does. */
export const replicationProtocol = "kcore-replication/1";

/** The whole API of a controller. A method that is not listed here does not exist. */
export const methods = {
  health: read("/healthz", c.Nothing, always),
  ready: read("/readyz", c.ControllerHealth, always),
  /** Prometheus text format. */
  metrics: read("/metrics", z.string(), { whileJoining: true, form: "text" }),

  registerNode: ofNode("/v1/nodes/register", s.Registration, s.HeartbeatReply),
  /** Not in the audit: it is frequent, and changes nothing that lasts. */
  heartbeat: ofNode("/v1/nodes/heartbeat", s.Heartbeat, s.HeartbeatReply, { audit: false }),
  /** Called by an agent that stops: its node is not ready from now on. */
  goodbye: ofNode("/v1/nodes/goodbye", s.Heartbeat, s.HeartbeatReply),
  renewChallenge: ofNode("/v1/nodes/renew-challenge", s.Heartbeat.pick({ nodeId: true }), s.RenewChallenge, {
    approvedOnly: true,
    audit: false,
  }),
  /** A new certificate for the caller's own id and names, for a key made on the node. */
  renew: ofNode("/v1/nodes/renew", s.Renewal, s.Renewed, { approvedOnly: true }),

  /** A node of a rollout reports its progress and waits for its next order. Not in the audit: it is frequent. */
  exchangeUpdate: ofNode("/v1/nodes/update", u.UpdateExchange, u.UpdateAnswer, { approvedOnly: true, audit: false }),

  listNodes: read("/v1/nodes", s.NodeList, { form: "list" }),
  /** A page of the nodes, in the order of their names; `{id}` is `LIMIT@` or `LIMIT@NAME/ID`, after that node. */
  listNodesAfter: read("/v1/nodes-after/{id}", s.NodeList, { form: "list" }),
  getNode: read("/v1/nodes/{id}", s.NodeDetail, { roles: everyone, ownNodeOnly: true, whileRejected: true }),
  /** `{id}` is an operator's name for the node: its id, its host name, or the beginning of its id. */
  findNode: read("/v1/node-names/{id}", s.NodeView),
  approveNode: change("/v1/nodes/{id}/approve", s.ApprovalChange, s.NodeView),
  rejectNode: change("/v1/nodes/{id}/reject", s.ApprovalChange, s.NodeView),
  setLabels: change("/v1/nodes/{id}/labels", s.LabelsChange, s.NodeView),
  setTaints: change("/v1/nodes/{id}/taints", s.TaintsChange, s.NodeView),
  /** Lets a node appear as Unknown before it has registered. */
  setExpected: change("/v1/nodes/{id}/expected", s.Expected),
  /** The id of a removed node is never accepted again. */
  removeNode: change("/v1/nodes/{id}/remove", s.Removal),

  listControllers: read("/v1/controllers", c.ControllerList),
  registerController: change("/v1/controllers/{id}/register", c.ControllerRegistration),
  removeController: change("/v1/controllers/{id}/remove", s.Removal),
  /** Asked of the leaving controller, which pushes its writes until a peer has them, then removes its own registration. */
  leave: change("/v1/controllers/leave", c.Nothing),
  replicationStatus: read("/v1/replication", c.ReplicationView, { whileJoining: true }),
  /** The persistent stream between two controllers: `upgrade: kcore-replication/1`, then frames both ways. */
  replicate: read("/v1/replicate", c.Nothing, { roles: ["controller"], whileJoining: true, form: "stream" }),

  listConflicts: read("/v1/conflicts", s.ConflictList, { form: "list" }),
  ackConflict: change("/v1/conflicts/{id}/ack", c.Nothing),
  /** Writes the losing value anew, and closes the conflict. */
  takeLoser: change("/v1/conflicts/{id}/take-loser", c.Nothing),

  /** Entries of this controller's audit trail, from number `{id}` on, as they were written. */
  listAudit: read("/v1/audit/{id}", c.AuditPage, { roles: operators }),

  /** The last writes of the controller whose id begins with `{id}`, for an operator who removes a controller in wrong hands. */
  listWrites: read("/v1/writes/{id}", s.WriteList, { roles: operators, form: "list" }),

  listCertificates: read("/v1/certificates", s.CertificateList, { form: "list" }),
  recordCertificate: change("/v1/certificates", c.CertificateRecord),
  revoke: change("/v1/certificates/revoke", c.Revocation, c.RevokeResult),
  /** Makes a new sub-CA key on this controller, which uses it once its certificate is installed. */
  subCaRequest: change("/v1/sub-ca/request", c.KeyRequest, c.SubCaProof),
  /** The controller issues by its new sub-CA at once, without a restart. */
  subCaInstall: change("/v1/sub-ca/install", c.SubCaCertificate, c.SubCaInstalled),
  /** As subCaRequest, for the controller's own certificate (`kcore rotate certs`). */
  certificateRequest: change("/v1/own-certificate/request", c.KeyRequest, c.CertificateProof),
  certificateInstall: change("/v1/own-certificate/install", c.SubCaCertificate, c.SubCaInstalled),

  listObjects: read("/v1/objects", c.ObjectList, { form: "list" }),
  /** `{id}` is `KIND/NAME`, percent-encoded. */
  getObject: read("/v1/objects/{id}", c.ObjectView),
  putObject: change("/v1/objects/{id}", c.ObjectWrite),
  /** The recorded VMs with their nodes; they are objects of kind VM. */
  listVms: read("/v1/vms", VmList, { form: "list" }),
  removeObject: change("/v1/objects/{id}/remove", c.Nothing),
  /** `{id}` is the configuration's group. */
  putConfig: change("/v1/config/{id}", c.ObjectWrite),

  listUpdates: read("/v1/updates", u.UpdateList, { form: "list" }),
  getUpdate: read("/v1/updates/{id}", u.UpdateView),
  planUpdate: { ...change("/v1/update-plan", u.UpdatePlanRequest, u.UpdatePlan), audit: false },
  /** Asked of the update's owner; for a new update, of any controller. */
  applyUpdate: change("/v1/updates/{id}", u.UpdateApply, u.UpdateApplied),
  approveUpdate: change("/v1/updates/{id}/approve", u.UpdateApproval),
  cancelUpdate: change("/v1/updates/{id}/cancel", u.OperatorRequestBody),
  rollbackUpdate: change("/v1/updates/{id}/rollback", u.OperatorRequestBody),
  promoteUpdate: change("/v1/updates/{id}/promote", u.OperatorRequestBody),
  /** Asked of any controller, because the bastion has signed the new owner. */
  takeOverUpdate: change("/v1/updates/{id}/takeover", u.UpdateTakeover, u.UpdateTaken),
  /** Asked of the update's owner. */
  removeUpdate: change("/v1/updates/{id}/remove", c.Nothing),
  attendUpdate: change("/v1/updates/{id}/attend", u.UpdateAttendance),
  answerHook: change("/v1/updates/{id}/hooks", u.UpdateHookAnswer),

  /** The bundles on this controller, whole or in part. */
  listBundles: read("/v1/bundles", u.BundleList),
  /** `{id}` is the bundle's SHA-256. The answer has the offset of the next piece, which need not follow this one. */
  putBundle: { ...change("/v1/bundles/{id}", u.BundlePiece, u.BundleHeld), audit: "whole" },
  /** The bytes of a bundle from an offset on; `{id}` is `SHA256@OFFSET`. */
  bundle: read("/v1/bundles/{id}", c.Nothing, { roles: everyone, approvedOnly: true, form: "bytes" }),

  /** A consistent snapshot of this controller's state, to be given to `kcore controller restore`. */
  backup: read("/v1/backup", c.Nothing, { roles: operators, audit: true, form: "bytes" }),
  watch: { ...change("/v1/watch", c.WatchRequest, c.WatchLine), audit: false, form: "lines" },
} as const;

export type Methods = typeof methods;
export type MethodName = keyof Methods;
export type BodyOf<Name extends MethodName> = z.input<Methods[Name]["body"]>;
export type AcceptedBodyOf<Name extends MethodName> = z.output<Methods[Name]["body"]>;
export type ReplyOf<Name extends MethodName> = z.output<Methods[Name]["reply"]>;
/** The answer as a controller makes it: fields with a default may be left out. */
export type AnswerOf<Name extends MethodName> = z.input<Methods[Name]["reply"]>;
/** Methods that answer with a list, sent while it is made. */
export type ListMethodName = {
  [Name in MethodName]: Methods[Name] extends { readonly form: "list" } ? Name : never;
}[MethodName];
/** Methods that answer with one JSON document or one text. */
export type PlainMethodName = Exclude<MethodName, StreamedMethodName>;
export type StreamedMethodName = "backup" | "bundle" | "replicate" | "watch";

/** Whether a call leaves a line in the controller's audit; `reply`: its answer, undefined if it was refused. */
export function isAudited(name: MethodName, reply?: unknown): boolean {
  const { verb, audit = verb === "POST" }: Method = methods[name];
  return audit === "whole" ? (reply as { readonly whole?: boolean } | undefined)?.whole !== false : audit;
}

const names = Object.keys(methods) as readonly MethodName[];
const byRoute = new Map(names.map((name) => [`${methods[name].verb} ${methods[name].path}`, name]));
const paths = new Set<string>(names.map((name) => methods[name].path));
const idPositions = new Set(names.map((name) => methods[name].path.split("/").indexOf("{id}")).filter((at) => at >= 0));

/** The method of a request, with the value of `{id}`, or whether only the verb is wrong. Literal paths win: no node can be called “register”. */
export function findMethod(
  verb: string,
  path: string,
): { readonly name: MethodName; readonly id?: string } | { readonly wrongVerb: boolean } {
  const segments = path.split("/");
  const name = byRoute.get(`${verb} ${path}`);
  if (name !== undefined && !segments.includes("{id}")) return { name };
  let wrongVerb = paths.has(path);
  for (const at of idPositions) {
    const segment = segments[at];
    if (segment === undefined) continue;
    const shape = segments.with(at, "{id}").join("/");
    const found = byRoute.get(`${verb} ${shape}`);
    wrongVerb ||= paths.has(shape);
    const id = found === undefined ? undefined : decode(segment);
    if (found !== undefined && id !== undefined && id !== "") return { name: found, id };
  }
  return { wrongVerb };
}

function decode(segment: string): string | undefined {
  try {
    return segment.includes("%") ? decodeURIComponent(segment) : segment;
  } catch {
    return undefined;
  }
}
