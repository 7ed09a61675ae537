import { readFile } from "node:fs/promises";
import { z } from "zod";
import { askOnce, controllerEndpoint } from "#api/ask.ts";
import { ApiRefusal } from "#api/client.ts";
import type { NodeDetail, NodeView } from "#api/schemas.ts";
import { poll } from "#base/wait.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { firstCertificate } from "#pki/chain.ts";
import { addController, type Context } from "#pki/contexts.ts";
import { issuedFile } from "#pki/issued.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";
import {
  askingOf,
  endpointsFor,
  isController,
  nodeOf,
  noteFounded,
  openContext,
  contextHomeOf,
} from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  timeout: z.number().positive().max(3600).default(120).describe("Seconds that the node may take to be ready"),
  approvalTimeout: z
    .number()
    .positive()
    .max(86_400)
    .default(3600)
    .describe("Seconds that an operator may take to approve the node; not counted in timeout"),
  port: z.int().min(1).max(65_535).default(9090).describe("Port of the controllers that the roster names"),
});
type Args = z.output<typeof Args>;

const pauseMs = 1_000;

/** The node as a controller reports it if it is ready, or the reason why it is not ready yet. */
type Readiness = { readonly ready: NodeView } | { readonly waitingFor: string; readonly isPending?: true };

/**
 * Waits until a controller reports a node as ready, with the key of the certificate that was issued last or of a later renewal.
 * On a controller's node it waits until that controller is ready too, and notes the controller's endpoint in the context.
 */
export const clusterWaitReady = defineAction({
  name: "cluster.waitReady",
  summary: "Waits until a node has registered and is ready, and its controller answers if it has one.",
  outputs: ["certificateExpires", "id", "status"],
  args: Args,
  async run(args, context) {
    const node = nodeOf("cluster.waitReady", args.node, context);
    const cluster = await openContext(context);
    let patience = args.timeout;
    let giveUpAt = performance.now() + patience * 1000;
    let lastNote = "";
    let wasPending = false;
    const findReady = async (): Promise<NodeView | undefined> => {
      const found = await askReadiness(node, args, cluster, context);
      if ("ready" in found) return found.ready;
      if (found.waitingFor !== lastNote) context.note(`waiting for ${node.name}: ${found.waitingFor}`);
      lastNote = found.waitingFor;
      const isPending = found.isPending === true;
      // An operator's approval has a time limit of its own, and the time after it begins anew.
      if (isPending !== wasPending) {
        patience = isPending ? args.approvalTimeout : args.timeout;
        giveUpAt = performance.now() + patience * 1000;
      }
      wasPending = isPending;
      if (performance.now() + pauseMs > giveUpAt) throw notReady(node, patience, lastNote);
      return undefined;
    };
    const ready = await poll(findReady, { everyMs: pauseMs, signal: context.signal });
    return noteReady(node, ready, args, cluster, context);
  },
  async plan(args, context) {
    const found = await askReadiness(
      nodeOf("cluster.waitReady", args.node, context),
      args,
      await openContext(context),
      context,
    );
    return "ready" in found ? resultOf(found.ready) : "unknown";
  },
});

async function askReadiness(
  node: NodeEntry,
  { port }: Args,
  cluster: Context,
  context: ActionContext,
): Promise<Readiness> {
  let view: NodeDetail;
  try {
    if (isController(node)) {
      const itself = askingOf(cluster, context, [controllerEndpoint(node.address, port)]);
      const health = await askOnce(itself, (client) => client.call("ready", {}));
      if (!health.ready) return { waitingFor: `its controller is not ready: ${health.reason ?? "no reason given"}` };
    }
    const endpoints = endpointsFor(node, port, cluster, context);
    view = await askOnce(askingOf(cluster, context, endpoints), (client) =>
      client.call("getNode", {}, { id: node.id }),
    );
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    if (error instanceof ApiRefusal && error.status === 404) return { waitingFor: "it has not registered yet" };
    if (error.problems.some(({ code }) => code === "CLUSTER_UNKNOWN" || code === "CONFIG_INVALID")) throw error;
    return { waitingFor: error.message };
  }
  return readinessOf(view, await expectedKey(cluster.folder, node.id));
}

function readinessOf(view: NodeDetail, key: string | undefined): Readiness {
  if (view.approval === "rejected") {
    throw new KcoreError({
      code: "NODE_REJECTED",
      message: `node ${view.hostname} (${view.id}) was rejected`,
      hint: `kcore node approve ${view.id}, then run again`,
    });
  }
  // The cluster knows the node from the roster alone.
  if (view.status === "unknown") return { waitingFor: "it has not registered yet" };
  if (view.approval === "pending")
    return { waitingFor: `it is pending until an operator says: kcore node approve ${view.id}`, isPending: true };
  if (view.status !== "ready") return { waitingFor: view.reason ?? `it is ${view.status}` };
  // The cluster revokes the key of the last deployment once the agent has renewed its certificate with another key.
  const isRenewed = view.certificates.some(({ spki, status }) => spki === key && status === "revoked");
  return key === undefined || key === view.key || isRenewed
    ? { ready: view }
    : { waitingFor: "it has not registered with its new key yet" };
}

/** The key of the certificate that was issued last; undefined if this machine issued none. An agent with another key does not use it yet. */
async function expectedKey(folder: string, id: string): Promise<string | undefined> {
  const pem = await readFile(issuedFile(folder, id, "node"), "utf8").catch(() => undefined);
  return pem === undefined ? undefined : keyFingerprint(publicDer(firstCertificate(pem).publicKey));
}

async function noteReady(
  node: NodeEntry,
  view: NodeView,
  { port }: Args,
  cluster: Context,
  context: ActionContext,
): Promise<ActionResult> {
  const endpoint = controllerEndpoint(node.address, port);
  if (isController(node)) await noteFounded(cluster, context);
  if (isController(node) && (await addController(contextHomeOf(context), cluster.name, endpoint))) {
    context.note(`context ${cluster.name} now knows the controller ${endpoint}`);
  }
  context.note(`${node.name} is ready`);
  return resultOf(view);
}

function resultOf({ id, status, certificateExpires }: NodeView): ActionResult {
  return { changed: false, outputs: { id, status, certificateExpires } };
}

function notReady(node: NodeEntry, timeout: number, waitingFor: string): KcoreError {
  return new KcoreError(
    {
      code: "NODE_NOT_READY",
      message: `${node.name} is not ready after ${timeout} s: ${waitingFor}`,
      hint: `kcore exec --on ${node.name} -- journalctl -n 30 -u kcore-node-agent -u kcore-controller`,
    },
    { exitCode: 1 },
  );
}
