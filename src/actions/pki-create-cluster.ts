import { userInfo } from "node:os";
import { z } from "zod";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { defineAction, type ActionContext } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";
import { createCluster } from "#pki/cluster.ts";
import { readConfig } from "#pki/contexts.ts";
import { controllerEndpoint } from "#api/ask.ts";
import { clusterAt } from "#api/cluster-at.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { isController, joinControllersOf, contextHomeOf } from "./cluster-context.ts";

const Args = z.strictObject({
  controller: z.string().optional().describe("Endpoint of the first controller; else cluster.waitReady notes it"),
});

/** Makes the cluster's CA on this machine if the run's context does not exist yet; an existing one stays as it is. */
export const pkiCreateCluster = defineAction({
  name: "pki.createCluster",
  summary: "Makes the cluster's CA and the context on this machine, if they are not there yet.",
  outputs: [],
  args: Args,
  async run({ controller }, context) {
    const name = await missingContext(controller, context);
    if (name === undefined) return { changed: false, outputs: {} };
    const { folder } = await createCluster({
      ...contextHomeOf(context),
      context: name,
      controllers: controller === undefined ? [] : [formatEndpoint(parseEndpoint(controller))],
      operator: userInfo().username,
      passphrase: await newPassphrase(context),
      now: Date.now(),
    });
    context.note(`created the cluster “${name}” in ${folder}; keep the passphrase of its CA's keys`);
    return { changed: true, outputs: {} };
  },
  async plan({ controller }, context) {
    const name = await missingContext(controller, context);
    if (name === undefined) return { changed: false, outputs: {} };
    context.note(`would create the cluster “${name}”`);
    return { changed: true, outputs: {} };
  },
});

/** The name of the run's context if it has to be made; undefined: it exists. @throws KcoreError CLUSTER_EXISTS, USAGE */
async function missingContext(controller: string | undefined, context: ActionContext): Promise<string | undefined> {
  const { contexts, "current-context": current } = await readConfig(contextHomeOf(context));
  const name = context.context ?? current ?? "default";
  if (Object.hasOwn(contexts, name)) return undefined;
  await refuseSecondCluster(context.nodes.values(), controller === undefined ? [] : [controller]);
  return name;
}

/** The passphrase; an operator types it twice, since a typing mistake would show only at the next use. @throws KcoreError USAGE */
async function newPassphrase({ givenPassphrase, passphrase, ask }: ActionContext): Promise<string> {
  const first = await passphrase();
  if (givenPassphrase !== undefined) return first;
  const again = await ask({ kind: "passphrase", text: "Once more, for a new cluster", secret: true });
  if (again === first) return first;
  throw new KcoreError({ code: "USAGE", message: "the two passphrases differ", hint: "run it again" });
}

/**
 * Refuses to make a CA if a controller already answers at an endpoint that the roster or operator names for this cluster.
 * @throws KcoreError CLUSTER_EXISTS, USAGE
 */
export async function refuseSecondCluster(nodes: Iterable<NodeEntry>, given: readonly string[]): Promise<void> {
  const ofRoster = [...nodes].flatMap((node) => [
    ...(isController(node) ? [controllerEndpoint(node.address)] : []),
    ...joinControllersOf(node),
  ]);
  const endpoints = [...new Set([...given.map((text) => formatEndpoint(parseEndpoint(text))), ...ofRoster])];
  const checks = endpoints.map(async (endpoint) => {
    const cluster = await clusterAt(parseEndpoint(endpoint));
    if (cluster === undefined) return [];
    return {
      code: "CLUSTER_EXISTS" as const,
      message: `${endpoint} answers as a controller of the cluster “${cluster}”, and a new CA would not belong to that cluster`,
      hint: "kcore cluster restore FILE brings back its CA and context; for a new cluster all the same: kcore create cluster --force",
    };
  });
  const problems = (await Promise.all(checks)).flat();
  if (problems.length > 0) throw new KcoreError(problems);
}
