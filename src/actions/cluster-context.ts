import { rename } from "node:fs/promises";
import { join } from "node:path";
import { controllerEndpoint, type ControllersOptions } from "#api/ask.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { refuseWrongClock } from "#api/refuse-wrong-clock.ts";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { parsePlainYaml, printYaml } from "#engine/yaml/plain-yaml.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { loadContext, type Context, type ContextHome } from "#pki/contexts.ts";
import { hostsIssuedTo } from "#pki/issued.ts";
import { ifThere, isThere } from "#base/file.ts";
import { foundedMark, unfoundedMark } from "#pki/cluster.ts";
import { onceARun } from "./once-a-run.ts";

/** The folder with the operator's contexts, as src/pki reads them. */
export function contextHomeOf({ home }: Pick<ActionContext, "home">): ContextHome {
  return { home, codec: { parse: parsePlainYaml, print: printYaml } };
}

type Opening = Pick<ActionContext, "home" | "context"> & Partial<Pick<ActionContext, "nodes" | "targets">>;

/**
 * The run's context, with its certificates. A controller that the run deploys has the roster's present address, also if it moved.
 * @throws KcoreError PKI_CONTEXT_UNKNOWN, CONFIG_INVALID, FILE_UNREADABLE, FILE_UNTRUSTED; USAGE for an endpoint of the context
 */
export async function openContext(context: Opening): Promise<Context> {
  const found = await loadContext(contextHomeOf(context), context.context);
  return { ...found, controllers: await followMoves(found, context) };
}

/**
 * The context's endpoints. An endpoint that the roster no longer has is replaced by the present address of the run's controller whose
 * certificate names the former one.
 */
async function followMoves(
  { folder, controllers }: Context,
  { nodes = new Map<string, NodeEntry>(), targets = [] }: Opening,
): Promise<readonly string[]> {
  const inRoster = hostsOfRoster(nodes.values());
  const isKnown = (text: string): boolean => inRoster.has(parseEndpoint(text).host.toLowerCase());
  if (controllers.every(isKnown)) return controllers;
  const deployed = targets.flatMap((name) => nodes.get(name) ?? []).filter(isController);
  const certified = await Promise.all(
    deployed.map(async ({ id, address }) => ({ address, hosts: await hostsIssuedTo(folder, id) })),
  );
  const present = controllers.map((text) => {
    const { host, port } = parseEndpoint(text);
    const moved = isKnown(text)
      ? undefined
      : certified.find(({ address, hosts }) => hosts.includes(host) && !hosts.includes(address));
    return moved ? controllerEndpoint(moved.address, port) : text;
  });
  return [...new Set(present)];
}

/** Refuses to sign for the run's cluster if controllers answer and this machine's clock differs from all of theirs. @throws KcoreError CLOCK_DIFFERS */
export async function checkClockOnce(context: ActionContext): Promise<void> {
  const { controllers: endpoints, ...own } = await openContext(context);
  // Once a run: if no controller answers, each check takes seconds.
  await onceARun(`clock ${endpoints.join(" ")}`, context, () => refuseWrongClock({ ...own, endpoints }));
}

/** All names and addresses of a roster, in lower case. */
export function hostsOfRoster(nodes: Iterable<NodeEntry>): ReadonlySet<string> {
  return new Set([...nodes].flatMap(({ name, address }) => [name.toLowerCase(), address.toLowerCase()]));
}

/** The node that an action is about: the named one, else the stage's own. @throws KcoreError NODE_UNKNOWN */
export function nodeOf(action: string, name: string | undefined, context: ActionContext): NodeEntry {
  const node = name === undefined ? context.node : context.nodes.get(name);
  if (node) return node;
  const hint =
    name === undefined ? "give node: NAME, or each: TARGET in the stage" : suggestHint(name, context.nodes.keys());
  throw new KcoreError({
    code: "NODE_UNKNOWN",
    message: name === undefined ? `${action} was not told for which node` : `no node “${name}” in the roster`,
    hint,
  });
}

export function isController({ roles }: Pick<NodeEntry, "roles">): boolean {
  return roles.includes("controller");
}

/** The options to call the controllers of a context: as the context's operator, on behalf of the run. */
export function askingOf(
  { ca, cert, key }: Context,
  { signal, runId }: Pick<ActionContext, "signal" | "runId">,
  endpoints: readonly string[],
): ControllersOptions {
  return { endpoints, credentials: { ca, cert, key }, clock: Date.now, signal, run: runId };
}

/** Whether an error says that each controller was unreachable or has an expired certificate, as after a year switched off: a deployment corrects both. */
export function areAway(error: unknown): boolean {
  const isAway = ({ code, message }: Problem): boolean =>
    code === "API_UNREACHABLE" || (code === "API_UNTRUSTED" && message.includes("certificate has expired"));
  return error instanceof KcoreError && error.problems.every(isAway);
}

/** The controllers that a node's roster entry names in `vars.joinControllers`, `host:port`. @throws KcoreError USAGE */
export function joinControllersOf({ name, vars }: Pick<NodeEntry, "name" | "vars">): readonly string[] {
  const given = vars["joinControllers"] ?? [];
  if (Array.isArray(given) && given.every((item) => typeof item === "string"))
    return given.map((text) => {
      const { host, port } = parseEndpoint(text);
      return controllerEndpoint(host, port);
    });
  throw new KcoreError({
    code: "USAGE",
    message: `vars.joinControllers of ${name} is not a list of endpoints`,
    hint: 'joinControllers: ["192.0.2.11:9090"]',
  });
}

/** Whether an endpoint belongs to the node's own controller, by the node's address or name. `own`: the controller's endpoint. */
export function isOwnEndpoint(endpoint: string, { name, address }: NodeEntry, own: string): boolean {
  const { host, port } = parseEndpoint(endpoint);
  const names = [name, address].map((text) => text.toLowerCase());
  return names.includes(host.toLowerCase()) && port === parseEndpoint(own).port;
}

/** Controllers that may know a node, each once: its own first, then the context's, then the roster's. */
export function endpointsFor(
  node: NodeEntry,
  port: number,
  cluster: Context,
  { nodes }: ActionContext,
): readonly string[] {
  const fromRoster = [...nodes.values()].filter(isController).map(({ address }) => controllerEndpoint(address, port));
  const own = isController(node) ? [controllerEndpoint(node.address, port)] : [];
  return [...new Set([...own, ...cluster.controllers, ...fromRoster])];
}

/** Puts a node's own controller last: that controller may still be joining, or may not know that the cluster has removed it. */
export function othersFirst(...[node, ...rest]: Parameters<typeof endpointsFor>): readonly string[] {
  const known = endpointsFor(node, ...rest);
  return isController(node) ? [...known.slice(1), ...known.slice(0, 1)] : known;
}

/**
 * Whether this cluster was ever founded, as far as the bastion knows. A cluster is founded once: `create cluster` marks its
 * context as unfounded until the bastion sees a controller of it ready. A context of an older kcore has no mark; there, a
 * cluster with a controller counts as founded.
 */
export async function wasFounded({ folder, controllers }: Pick<Context, "folder" | "controllers">): Promise<boolean> {
  if (await isThere(join(folder, unfoundedMark))) return false;
  return controllers.length > 0 || (await isThere(join(folder, foundedMark)));
}

/** Records that a controller was seen ready: from now on the cluster counts as founded. A dry run records nothing. */
export async function noteFounded(
  { folder }: Pick<Context, "folder">,
  { dryRun }: Pick<ActionContext, "dryRun">,
): Promise<void> {
  if (dryRun) return;
  // Without the file, the mark is renamed already, or the context is older than such marks.
  await ifThere(rename(join(folder, unfoundedMark), join(folder, foundedMark)));
}
