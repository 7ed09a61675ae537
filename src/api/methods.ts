import { z } from "zod";
import type { Role } from "#pki/identity.ts";
import * as s from "./schemas.ts";

/** One thing a controller can be asked. */
export interface Method<Body extends z.ZodType = z.ZodType, Reply extends z.ZodType = z.ZodType> {
  readonly verb: "GET" | "POST";
  /** `{id}` stands for one path segment, percent-encoded. */
  readonly path: string;
  /** Who may ask; nobody else, and nobody without a certificate (S-16). */
  readonly roles: readonly Role[];
  /** A node may ask this only about itself: the `{id}`, or the body's nodeId, must be its certificate's (S-12). */
  readonly ownNodeOnly?: true;
  /** A node must be approved to ask this. */
  readonly approvedOnly?: true;
  /** Answered while the controller is still joining: it tells nothing of the cluster's state. */
  readonly whileJoining?: true;
  /** A rejected node still gets its answer: it must be able to learn that it is rejected. */
  readonly whileRejected?: true;
  /** Whether each call leaves a line in the controller's audit; unless told otherwise every POST does. */
  readonly audit?: boolean;
  /** What comes back when it is not one JSON document: text, lines of JSON (`reply` is a line), bytes, or another protocol. */
  readonly form?: "text" | "lines" | "bytes" | "stream";
  readonly body: Body;
  readonly reply: Reply;
}

function method<Body extends z.ZodType, Reply extends z.ZodType, const Rest extends object>(
  given: Method<Body, Reply> & Rest,
): Method<Body, Reply> & Rest {
  return given;
}

const everyone = ["controller", "node", "operator"] as const;
const operator = ["operator"] as const;
const readers = ["controller", "operator"] as const;
const ownNode = { verb: "POST", roles: ["node"], ownNodeOnly: true } as const;
const change = { verb: "POST", roles: operator } as const;

/** The protocol that controllers switch to; its number changes when the framing does. */
export const replicationProtocol = "kcore-replication/1";

/** The whole API of a controller. What is not listed here does not exist. */
export const methods = {
  health: method({
    verb: "GET",
    path: "/healthz",
    roles: everyone,
    whileJoining: true,
    whileRejected: true,
    body: s.Nothing,
    reply: s.Nothing,
  }),
  ready: method({
    verb: "GET",
    path: "/readyz",
    roles: everyone,
    whileJoining: true,
    whileRejected: true,
    body: s.Nothing,
    reply: s.ControllerHealth,
  }),
  /** Prometheus text format. */
  metrics: method({
    verb: "GET",
    path: "/metrics",
    roles: readers,
    whileJoining: true,
    form: "text",
    body: s.Nothing,
    reply: z.string(),
  }),

  registerNode: method({ ...ownNode, path: "/v1/nodes/register", body: s.Registration, reply: s.Standing }),
  /** Not in the audit: it changes nothing that lasts, and comes all the time. */
  heartbeat: method({ ...ownNode, audit: false, path: "/v1/nodes/heartbeat", body: s.Heartbeat, reply: s.Standing }),
  /** An agent that stops says so: its node is not ready from now on. */
  goodbye: method({ ...ownNode, path: "/v1/nodes/goodbye", body: s.Heartbeat, reply: s.Standing }),
  renewChallenge: method({
    ...ownNode,
    approvedOnly: true,
    audit: false,
    path: "/v1/nodes/renew-challenge",
    body: z.object({ nodeId: s.Heartbeat.shape.nodeId }),
    reply: s.RenewChallenge,
  }),
  /** A new certificate for the caller's own id and names, for a key made on the node. */
  renew: method({ ...ownNode, approvedOnly: true, path: "/v1/nodes/renew", body: s.Renewal, reply: s.Renewed }),

  listNodes: method({ verb: "GET", path: "/v1/nodes", roles: readers, body: s.Nothing, reply: s.NodeList }),
  getNode: method({
    verb: "GET",
    path: "/v1/nodes/{id}",
    roles: everyone,
    ownNodeOnly: true,
    whileRejected: true,
    body: s.Nothing,
    reply: s.NodeDetail,
  }),
  /** `{id}` is what an operator calls the node: its id, its host name, or the beginning of its id. */
  findNode: method({ verb: "GET", path: "/v1/node-names/{id}", roles: readers, body: s.Nothing, reply: s.NodeView }),
  approveNode: method({ ...change, path: "/v1/nodes/{id}/approve", body: s.ApprovalChange, reply: s.NodeView }),
  rejectNode: method({ ...change, path: "/v1/nodes/{id}/reject", body: s.ApprovalChange, reply: s.NodeView }),
  setLabels: method({ ...change, path: "/v1/nodes/{id}/labels", body: s.LabelsChange, reply: s.NodeView }),
  setTaints: method({ ...change, path: "/v1/nodes/{id}/taints", body: s.TaintsChange, reply: s.NodeView }),
  setRoles: method({ ...change, path: "/v1/nodes/{id}/roles", body: s.RolesChange, reply: s.NodeView }),
  /** A node that has not registered yet is shown as Unknown with it. */
  setExpected: method({ ...change, path: "/v1/nodes/{id}/expected", body: s.ExpectedChange, reply: s.Written }),
  /** For ever: this id is never accepted again. */
  removeNode: method({ ...change, path: "/v1/nodes/{id}/remove", body: s.Removal, reply: s.Written }),

  listControllers: method({
    verb: "GET",
    path: "/v1/controllers",
    roles: readers,
    body: s.Nothing,
    reply: s.ControllerList,
  }),
  registerController: method({
    ...change,
    path: "/v1/controllers/{id}/register",
    body: s.ControllerRegistration,
    reply: s.Written,
  }),
  removeController: method({ ...change, path: "/v1/controllers/{id}/remove", body: s.Removal, reply: s.Written }),
  /** Asked of the controller that leaves: it pushes what it has until a peer has it, then takes itself off the list. */
  leave: method({ ...change, path: "/v1/controllers/leave", body: s.Nothing, reply: s.Written }),
  replicationStatus: method({
    verb: "GET",
    path: "/v1/replication",
    roles: readers,
    whileJoining: true,
    body: s.Nothing,
    reply: s.ReplicationStatus,
  }),
  /** The persistent stream between two controllers: `upgrade: kcore-replication/1`, then frames both ways. */
  replicate: method({
    verb: "GET",
    path: "/v1/replicate",
    roles: ["controller"],
    whileJoining: true,
    form: "stream",
    body: s.Nothing,
    reply: s.Nothing,
  }),

  listConflicts: method({ verb: "GET", path: "/v1/conflicts", roles: readers, body: s.Nothing, reply: s.ConflictList }),
  ackConflict: method({ ...change, path: "/v1/conflicts/{id}/ack", body: s.Nothing, reply: s.Written }),
  /** Writes the value that lost anew, and closes the conflict. */
  takeLoser: method({ ...change, path: "/v1/conflicts/{id}/take-loser", body: s.Nothing, reply: s.Written }),

  listCertificates: method({
    verb: "GET",
    path: "/v1/certificates",
    roles: readers,
    body: s.Nothing,
    reply: s.CertificateList,
  }),
  recordCertificate: method({ ...change, path: "/v1/certificates", body: s.CertificateRecord, reply: s.Written }),
  revoke: method({ ...change, path: "/v1/certificates/revoke", body: s.Revocation, reply: s.Revoked }),
  /** Makes a new key on this controller for a sub-CA; it is kept aside until its certificate comes. */
  subCaRequest: method({ ...change, path: "/v1/sub-ca/request", body: s.SubCaRequest, reply: s.SubCaProof }),
  /** In use at once, without a restart. */
  subCaInstall: method({ ...change, path: "/v1/sub-ca/install", body: s.SubCaCertificate, reply: s.SubCaInstalled }),
  /** The same for the controller's own certificate (`kcore rotate certs`). */
  certificateRequest: method({
    ...change,
    path: "/v1/own-certificate/request",
    body: s.SubCaRequest,
    reply: s.CertificateProof,
  }),
  certificateInstall: method({
    ...change,
    path: "/v1/own-certificate/install",
    body: s.SubCaCertificate,
    reply: s.SubCaInstalled,
  }),

  listObjects: method({ verb: "GET", path: "/v1/objects", roles: readers, body: s.Nothing, reply: s.ObjectList }),
  /** `{id}` is `KIND/NAME`, percent-encoded. */
  getObject: method({ verb: "GET", path: "/v1/objects/{id}", roles: readers, body: s.Nothing, reply: s.ObjectView }),
  putObject: method({ ...change, path: "/v1/objects/{id}", body: s.ObjectWrite, reply: s.Written }),
  removeObject: method({ ...change, path: "/v1/objects/{id}/remove", body: s.ObjectRemoval, reply: s.Written }),
  getConfig: method({ verb: "GET", path: "/v1/config", roles: readers, body: s.Nothing, reply: s.ConfigView }),
  /** `{id}` is the group. */
  putConfig: method({ ...change, path: "/v1/config/{id}", body: s.ObjectWrite, reply: s.Written }),

  /** A consistent snapshot of this controller's state, to be given to `kcore controller restore`. */
  backup: method({
    verb: "GET",
    path: "/v1/backup",
    roles: operator,
    audit: true,
    form: "bytes",
    body: s.Nothing,
    reply: s.Nothing,
  }),
  watch: method({
    verb: "POST",
    path: "/v1/watch",
    roles: operator,
    audit: false,
    form: "lines",
    body: s.WatchRequest,
    reply: s.WatchLine,
  }),
} as const;

export type Methods = typeof methods;
export type MethodName = keyof Methods;
export type BodyOf<Name extends MethodName> = z.input<Methods[Name]["body"]>;
export type AcceptedBodyOf<Name extends MethodName> = z.output<Methods[Name]["body"]>;
export type ReplyOf<Name extends MethodName> = z.output<Methods[Name]["reply"]>;
/** What a controller may answer: what has a default may be left out. */
export type AnswerOf<Name extends MethodName> = z.input<Methods[Name]["reply"]>;
/** Methods that are answered with one JSON document or one text. */
export type PlainMethodName = Exclude<MethodName, StreamedMethodName>;
/** Methods whose answer goes on. */
export type StreamedMethodName = "backup" | "replicate" | "watch";

/** Whether each call of a method leaves one line in the controller's audit, whatever comes of it. */
export function isAudited(name: MethodName): boolean {
  const { verb, audit = verb === "POST" }: Method = methods[name];
  return audit;
}

interface Route {
  readonly name: MethodName;
  readonly verb: string;
  readonly segments: readonly string[];
  readonly idAt: number;
}

const routes: readonly Route[] = (Object.keys(methods) as MethodName[]).map((name) => {
  const segments = methods[name].path.split("/");
  return { name, verb: methods[name].verb, segments, idAt: segments.indexOf("{id}") };
});
const literal = new Map(
  routes.filter(({ idAt }) => idAt < 0).map((route) => [keyOf(route.verb, pathOf(route)), route.name]),
);
const literalPaths = new Set(routes.filter(({ idAt }) => idAt < 0).map(pathOf));
const patterns = routes.filter(({ idAt }) => idAt >= 0);

function pathOf({ segments }: Route): string {
  return segments.join("/");
}

function keyOf(verb: string, path: string): string {
  return `${verb} ${path}`;
}

/** The method that a request means, with what stands for `{id}`. Literal paths go first: no node can be called “register”. */
export function findMethod(
  verb: string,
  path: string,
): { readonly name: MethodName; readonly id?: string } | { readonly wrongVerb: boolean } {
  const name = literal.get(keyOf(verb, path));
  if (name !== undefined) return { name };
  const segments = path.split("/");
  let wrongVerb = literalPaths.has(path);
  for (const route of patterns) {
    if (route.segments.length !== segments.length) continue;
    if (!route.segments.every((part, index) => index === route.idAt || part === segments[index])) continue;
    if (route.verb !== verb) {
      wrongVerb = true;
      continue;
    }
    const id = decode(segments[route.idAt] ?? "");
    if (id !== undefined && id !== "") return { name: route.name, id };
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
