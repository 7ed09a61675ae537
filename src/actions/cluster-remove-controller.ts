import { z } from "zod";
import { askOnce, controllerEndpoint } from "#api/ask.ts";
import type { ControllerView } from "#api/controller-schemas.ts";
import { poll } from "#base/wait.ts";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { changeControllers, type Context } from "#pki/contexts.ts";
import {
  areAway,
  askingOf,
  contextHomeOf,
  isController,
  isOwnEndpoint,
  nodeOf,
  openContext,
  othersFirst,
} from "./cluster-context.ts";

const Args = z.strictObject({
  node: z.string().optional().describe("Name of the node in the roster; the stage's own node unless given"),
  check: z.boolean().default(false).describe("Only check whether the node may go; change nothing"),
  running: z
    .boolean()
    .default(true)
    .describe("The controller still runs: it hands over what only it has; else writes that only it has are lost"),
  successor: z.string().default("").describe("The node that takes the place; it must have all roles of the node"),
  settle: z.number().min(0).max(600).default(60).describe("Seconds until another controller must be in step"),
  knownFor: z
    .number()
    .min(0)
    .max(600)
    .default(30)
    .describe("Seconds for which that controller must be registered: agents hear of it every 15 s"),
  reason: z.string().max(500).default("").describe("Kept with the removal of a controller that does not run"),
  port: z.int().min(1).max(65_535).default(9090).describe("Port of the controllers that the roster names"),
});
type Args = z.output<typeof Args>;

/**
 * Deregisters the controller of a node and removes its endpoint from the context. The cluster's only controller is refused. A running controller leaves
 * only when another one (with `successor`, that node's) is in step with it.
 */
export const clusterRemoveController = defineAction({
  name: "cluster.removeController",
  summary: "Deregisters a node's controller, if it has one: a running one hands over what only it has, and leaves.",
  outputs: ["allowed"],
  args: Args,
  run: (args, context) => remove(args, context, !args.check),
  plan: (args, context) => remove(args, context, false),
});

async function remove(args: Args, context: ActionContext, write: boolean): Promise<ActionResult> {
  const node = nodeOf("cluster.removeController", args.node, context);
  const successor = args.successor === "" ? undefined : nodeOf("cluster.removeController", args.successor, context);
  if (successor) checkRoles(node, successor);
  const cluster = await openContext(context);
  const asking = askingOf(cluster, context, othersFirst(node, args.port, cluster, context));
  const { controllers } = await askOnce(asking, (client) => client.call("listControllers", {}));
  const own = controllers.find(({ controllerId }) => controllerId === node.id);
  if (!own) return { changed: write && (await forget(node, [], args, cluster, context)), outputs: { allowed: true } };
  // Before a replacement the successor's controller is not registered yet.
  const isReplaced = args.check && successor !== undefined && isController(successor);
  if (controllers.length < 2 && !isReplaced) throw onlyController(node);
  if (!write) return { changed: !args.check, outputs: { allowed: true } };
  const keeper = successor && isController(successor) ? successor.id : undefined;
  if (args.running) await leave(node, { own, keeper, controllers, args, cluster, context });
  else {
    const others = asking.endpoints.filter((endpoint) => endpoint !== own.address);
    await askOnce({ ...asking, endpoints: others }, (client) =>
      client.call("removeController", args.reason === "" ? {} : { reason: args.reason }, { id: node.id }),
    );
    context.note(`the controller of ${node.name} is removed; writes that only it had are lost`);
  }
  await forget(node, [own.address], args, cluster, context);
  return { changed: true, outputs: { allowed: true } };
}

interface Leaving {
  readonly own: ControllerView;
  /** The id of the controller that must be in step; absent: any. */
  readonly keeper: string | undefined;
  readonly controllers: readonly ControllerView[];
  readonly args: Args;
  readonly cluster: Context;
  readonly context: ActionContext;
}

async function leave(node: NodeEntry, { own, keeper, controllers, args, cluster, context }: Leaving): Promise<void> {
  // An agent that knew the leaving controller alone would find no other one.
  const isKnown = ({ registered }: ControllerView): boolean =>
    Date.now() - Date.parse(registered) >= args.knownFor * 1000;
  const endpoints = [...new Set([controllerEndpoint(node.address, args.port), own.address])].filter(Boolean);
  const asking = { ...askingOf(cluster, context, endpoints), timeoutMs: 60_000 };
  try {
    let why = "";
    const hasKeeper = async (): Promise<boolean> => {
      const { peers } = await askOnce(asking, (client) => client.call("ready", {}));
      const wanted = peers.filter(({ controllerId }) => keeper === undefined || controllerId === keeper);
      const known = new Set(controllers.filter(isKnown).map(({ controllerId }) => controllerId));
      why =
        wanted.map(({ address, reason }) => `${address}: ${reason ?? "in step"}`).join("; ") || "it has no such peer";
      return wanted.some(({ controllerId, inStep }) => inStep && known.has(controllerId));
    };
    if (!(await poll(hasKeeper, { everyMs: 500, limitMs: args.settle * 1000, signal: context.signal })))
      throw new KcoreError(
        {
          code: "CLUSTER_UNHEALTHY",
          message: `the controller of ${node.name} stays: ${keeper === undefined ? "no other one" : args.successor} is not in step with it (${why})`,
          hint: "kcore get replication-status; then run again",
        },
        { exitCode: 1 },
      );
    await askOnce(asking, (client) => client.call("leave", {}));
    context.note(`the controller of ${node.name} has handed over and left`);
  } catch (error) {
    if (!(error instanceof KcoreError) || !areAway(error)) throw error;
    const problem = {
      code: "CLUSTER_UNHEALTHY",
      message: `the controller of ${node.name} does not answer, so it cannot hand over what only it has`,
      hint: `start it; or, if that may be lost: kcore controller remove ${node.id}; then run again`,
    } as const;
    throw new KcoreError([problem, ...error.problems], { cause: error, exitCode: 1 });
  }
}

/** Removes a controller's endpoints from the context; returns whether there were any. The last endpoint stays. */
function forget(
  node: NodeEntry,
  addresses: readonly string[],
  { port }: Args,
  { name }: Context,
  context: ActionContext,
): Promise<boolean> {
  // A controller whose role is gone from the roster still has an endpoint in the context.
  if (!isController(node) && addresses.length === 0) return Promise.resolve(false);
  const own = controllerEndpoint(node.address, port);
  return changeControllers(contextHomeOf(context), name, (known) => {
    const rest = known.filter((endpoint) => !addresses.includes(endpoint) && !isOwnEndpoint(endpoint, node, own));
    return rest.length === 0 ? known : rest;
  });
}

function checkRoles(node: NodeEntry, successor: NodeEntry): void {
  const missing = node.roles.filter((role) => !successor.roles.includes(role));
  if (successor.name !== node.name && missing.length === 0) return;
  throw new KcoreError({
    code: "NODE_NOT_REPLACED",
    message:
      successor.name === node.name
        ? `${node.name} cannot take its own place`
        : `${successor.name} cannot take the place of ${node.name}: the roster gives it no role ${missing.join(", ")}`,
    hint: `write roles: [${node.roles.join(", ")}] into the roster's entry of ${successor.name}`,
  });
}

function onlyController(node: NodeEntry): KcoreError {
  return new KcoreError(
    {
      code: "CLUSTER_UNHEALTHY",
      message: `${node.name} is the cluster's only controller`,
      hint: "deploy another one first; or replace it: kcore orchestrate replace_node NEW --set old=" + node.name,
    },
    { exitCode: 1 },
  );
}
