import { endpointOf } from "#api/ask.ts";
import { controllerAt } from "#api/controller-at.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import { KcoreError } from "#errors/problem.ts";
import { isController, joinControllersOf } from "./cluster-place.ts";

/**
 * Refuses to make a CA while a controller of a cluster answers where the roster, or the operator, says that this cluster's will be.
 * @throws KcoreError CLUSTER_EXISTS, USAGE
 */
export async function refuseSecondCluster(nodes: Iterable<NodeEntry>, given: readonly string[]): Promise<void> {
  const ofRoster = [...nodes].flatMap((node) => [
    ...(isController(node) ? [endpointOf(node.address)] : []),
    ...joinControllersOf(node),
  ]);
  const endpoints = [...new Set([...given.map((text) => formatEndpoint(parseEndpoint(text))), ...ofRoster])];
  const looks = endpoints.map(async (endpoint) => {
    const cluster = await controllerAt(parseEndpoint(endpoint));
    if (cluster === undefined) return [];
    return {
      code: "CLUSTER_EXISTS" as const,
      message: `${endpoint} answers as a controller of the cluster “${cluster}”, which a new CA would have no part in`,
      hint: "kcore cluster restore FILE brings back its CA and context; for a new cluster all the same: kcore create cluster --force",
    };
  });
  const problems = (await Promise.all(looks)).flat();
  if (problems.length > 0) throw new KcoreError(problems);
}
