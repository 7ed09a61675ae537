import { z } from "zod";
import { askOnce, controllerEndpoint } from "#api/ask.ts";
import { ApiRefusal } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { defineAction, type ActionContext } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import type { Context } from "#pki/contexts.ts";
import { identityOf } from "#pki/identity.ts";
import { issuedControllerKeys } from "#pki/issued.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import {
  areAway,
  askingOf,
  isController,
  isOwnEndpoint,
  joinControllersOf,
  nodeOf,
  noteFounded,
  openContext,
  wasFounded,
} from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  issued: z
    .object({ controllerCert: z.string().optional().describe("The controller's certificate and its issuers', PEM") })
    .describe("The outputs of pki.issueNode; the key of controllerCert is registered"),
  port: z.int().min(1).max(65_535).default(9090).describe("Port on which the controller will answer"),
  foundAgain: z
    .boolean()
    .optional()
    .describe(
      "Begin a new cluster although this one was founded once, when no other controller answers: all its state is lost",
    ),
});
type Args = z.output<typeof Args>;

/** How a controller begins: it founds the cluster, goes on with its state, or joins controllers with which it is registered. */
interface Beginning {
  /** Endpoints to join; empty: the controller founds the cluster, or goes on with the state that it has. */
  readonly join: readonly string[];
  /** Whether the controller may begin with an empty state: no other controller answers, and the cluster was never founded or `foundAgain` is set. */
  readonly mayFound: boolean;
}

/**
 * Has a controller of the cluster register a new one before it starts (docs/replication.md, Coming and going), and gives the new one's
 * first configuration. The first controller founds the cluster, once: no other controller could register it. Of the outputs, `founds`
 * says that there is no controller to join, and `found` that the controller may begin with an empty state, too.
 */
export const clusterRegisterController = defineAction({
  name: "cluster.registerController",
  summary: "Has a controller of the cluster register a new one before its start; gives the endpoints to join.",
  outputs: ["advertise", "bootstrap", "found", "founds", "join", "joinKeys", "rejoin"],
  args: Args,
  run: (args, context) => register(args, context, true),
  plan: (args, context) => register(args, context, false),
});

async function register(args: Args, context: ActionContext, write: boolean) {
  const node = nodeOf("cluster.registerController", args.node, context);
  if (!isController(node)) return { changed: false, outputs: { founds: false, join: [], joinKeys: {}, advertise: "" } };
  const cluster = await openContext(context);
  const own = controllerEndpoint(node.address, args.port);
  const spki = fingerprintOf(args.issued.controllerCert ?? "");
  const rejoin = othersInRoster(node, args.port, context);
  const { join, mayFound } = await decideBeginning(node, own, {
    cluster,
    context,
    rejoin,
    foundAgain: args.foundAgain === true,
  });
  const registration = { spki, address: own, dc: node.dc };
  let changed = false;
  let registered: ReadonlySet<string> = new Set();
  // `own` is last: a founder that already runs registers its own changed key or address.
  const sponsors = [...new Set([...join, ...othersOf(node, own, cluster), own])];
  try {
    const result = await askOnce(askingOf(cluster, context, sponsors), async (client) => {
      const { controllers } = await client.call("listControllers", {});
      registered = new Set(controllers.map(({ key }) => key));
      const present = controllers.find(({ controllerId }) => controllerId === node.id);
      if (present?.key === spki && present.address === own && present.dc === node.dc) return "unchanged";
      if (!write) return "updated";
      return (await client.call("registerController", registration, { id: node.id })).result;
    });
    changed = result !== "unchanged";
    if (changed && write) context.note(`${node.name} is registered as a controller in ${node.dc}`);
  } catch (error) {
    if (join.length > 0 || !areAway(error)) throw error instanceof KcoreError ? sponsorMissing(node, error) : error;
    context.note(
      mayFound
        ? `${node.name} founds the cluster ${cluster.name}`
        : `no controller answers; ${node.name} goes on with the state that it has`,
    );
  }
  const founds = join.length === 0;
  const joinKeys = await keysAt(join, registered, cluster, context);
  const founding = founds
    ? {
        ...(mayFound && { found: true }),
        rejoin,
        bootstrap: { ...operatorsOf(cluster), controller: registration },
      }
    : {};
  return { changed, outputs: { founds, join, joinKeys, advertise: own, ...founding } };
}

/**
 * By endpoint, the key of the certificate that this machine issued for that host: the joiner accepts no other key there. An endpoint whose
 * certificate another machine issued is left out.
 */
async function keysAt(
  join: readonly string[],
  registered: ReadonlySet<string>,
  { folder }: Context,
  { note }: Pick<ActionContext, "note">,
): Promise<Readonly<Record<string, string>>> {
  const found = new Map<string, string>();
  for (const endpoint of join) {
    const issued = await issuedControllerKeys(folder, parseEndpoint(endpoint).host);
    const key = issued.find((one) => registered.has(one)) ?? issued[0];
    if (key === undefined) note(`${endpoint} is joined on the CA's word: another machine issued its certificate`);
    else found.set(endpoint, key);
  }
  return Object.fromEntries(found);
}

/**
 * Decides how a controller begins. A new controller joins those of its roster entry, else the controllers before it in the context. The
 * answer stays the same when more controllers come later, so a second run changes nothing. A cluster is founded only if it never was, or with
 * `foundAgain` if no other controller answers.
 */
async function decideBeginning(
  node: NodeEntry,
  own: string,
  {
    cluster,
    context,
    rejoin,
    foundAgain,
  }: {
    readonly cluster: Context;
    readonly context: ActionContext;
    readonly rejoin: readonly string[];
    readonly foundAgain: boolean;
  },
): Promise<Beginning> {
  const others = othersOf(node, own, cluster);
  const findLiving = async (): Promise<readonly string[]> => {
    const living = await Promise.all(others.map((endpoint) => isReady(endpoint, cluster, context)));
    return others.filter((_, index) => living[index]);
  };
  if (foundAgain) {
    if ((await findLiving()).length === 0) return { join: [], mayFound: true };
    context.note("the cluster is not founded again: a controller of it answers");
  }
  const named = joinControllersOf(node);
  if (named.length > 0) return { join: named, mayFound: false };
  const known = cluster.controllers;
  const at = known.findIndex((endpoint) => isOwnEndpoint(endpoint, node, own));
  const before = at === -1 ? known : known.slice(0, at);
  if (before.length > 0) return { join: before, mayFound: false };
  // This controller is the context's first. A first controller that lost its disk must not found a second cluster.
  if (await isReady(own, cluster, context)) return { join: [], mayFound: false };
  const living = await findLiving();
  if (living.length === 0) return { join: [], mayFound: !(await wasFounded(cluster)) };
  // The controller gets its state back from `rejoin` by itself. So `join` is empty if an endpoint of `rejoin` answers. A later run, when
  // this controller answers, gives the same.
  return { join: rejoin.some((endpoint) => living.includes(endpoint)) ? [] : others, mayFound: false };
}

/** Endpoints of the roster's other controllers, from which a founder that lost its state gets it back. */
function othersInRoster(node: NodeEntry, port: number, { nodes }: ActionContext): readonly string[] {
  return [...nodes.values()]
    .filter((each) => isController(each) && each.id !== node.id)
    .map(({ address }) => controllerEndpoint(address, port));
}

function othersOf(node: NodeEntry, own: string, { controllers }: Context): readonly string[] {
  return controllers.filter((endpoint) => !isOwnEndpoint(endpoint, node, own));
}

/**
 * Whether the controller at this endpoint answers and is ready. Outside a dry run the context then records that the cluster was founded.
 */
async function isReady(endpoint: string, cluster: Context, context: ActionContext): Promise<boolean> {
  try {
    const { ready } = await askOnce(askingOf(cluster, context, [endpoint]), (client) => client.call("ready", {}));
    if (ready) await noteFounded(cluster, context);
    return ready;
  } catch (error) {
    if (error instanceof KcoreError) return false;
    throw error;
  }
}

function sponsorMissing(node: NodeEntry, error: KcoreError): KcoreError {
  const problem: Problem = {
    code: "CLUSTER_UNHEALTHY",
    message: `no controller could register ${node.name}: a controller joins only through one that is in the cluster`,
    // A revoked key needs its own hint: running again would use the same key.
    hint:
      (error instanceof ApiRefusal && error.reason === "KEY_REVOKED" ? error.refusal.hint : undefined) ??
      "kcore health; then run again",
  };
  return new KcoreError([problem, ...error.problems], { cause: error, exitCode: 1 });
}

function operatorsOf({ cert }: Context): object {
  const certificate = firstCertificate(cert);
  const { cluster, id } = identityOf(certificate, "client");
  return { cluster, operators: [{ name: id, spki: keyFingerprint(publicDer(certificate.publicKey)) }] };
}

function fingerprintOf(pem: string): string {
  return keyFingerprint(publicDer(firstCertificate(pem).publicKey));
}
