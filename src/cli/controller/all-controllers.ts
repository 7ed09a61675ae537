import type { QuestionOptions } from "#api/ask.ts";
import type { ApiClient } from "#api/client.ts";
import type { ControllerView } from "#api/controller-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { keysIssuedTo } from "#pki/issued.ts";
import type { Cluster } from "../cluster/open-cluster.ts";

/** A controller of the cluster and its endpoints for this machine. */
export interface Reachable {
  readonly controller: ControllerView;
  /** Endpoints to try, best first; empty if it has announced none. */
  readonly endpoints: readonly string[];
}

/**
 * Every registered controller, with its possible endpoints: those of the context that proved to be its own, then the
 * address that it announced to the others.
 */
export async function allControllers(cluster: Cluster): Promise<readonly Reachable[]> {
  const { controllers } = await cluster.ask((client) => client.call("listControllers", {}));
  const named = await Promise.all(
    cluster.endpoints.map(async (endpoint) => ({ endpoint, id: await idAt(endpoint, cluster) })),
  );
  const order = ({ dc, address }: ControllerView): string => `${dc} ${address}`;
  const sorted = controllers.toSorted((a, b) => (order(a) < order(b) ? -1 : 1));
  return sorted.map((controller) => ({
    controller,
    endpoints: [
      ...new Set([
        ...named.filter(({ id }) => id === controller.controllerId).map(({ endpoint }) => endpoint),
        ...(controller.address === "" ? [] : [controller.address]),
      ]),
    ],
  }));
}

async function idAt(endpoint: string, { ask }: Cluster): Promise<string | undefined> {
  try {
    return (await ask((client) => client.call("ready", {}), { endpoints: [endpoint] })).controllerId;
  } catch (error) {
    if (error instanceof KcoreError) return undefined;
    throw error;
  }
}

/**
 * As {@link askController}, but only a controller whose key this machine issued a certificate for: needed before a CA
 * signs. Otherwise a man in the middle with a stolen sub-CA could have a key of its own signed. If another machine
 * issued the certificate, the registered keys must do.
 */
export async function askPinned<Result>(
  one: Reachable,
  cluster: Cluster,
  work: (client: ApiClient) => Promise<Result>,
): Promise<Result> {
  const { controllerId, key, nextKey } = one.controller;
  const issued = await keysIssuedTo(cluster.folder, controllerId);
  const registered = [key, nextKey].filter((spki) => spki !== undefined);
  return askController(one, cluster, work, { serverKeys: issued.length > 0 ? issued : registered });
}

/** Asks one controller at the first of its endpoints that answers. @throws KcoreError with a problem per endpoint */
export async function askController<Result>(
  { controller, endpoints }: Reachable,
  { ask }: Cluster,
  work: (client: ApiClient) => Promise<Result>,
  options?: QuestionOptions,
): Promise<Result> {
  if (endpoints.length > 0) return ask(work, { ...options, endpoints });
  throw new KcoreError({
    code: "API_UNREACHABLE",
    message: `controller ${controller.controllerId} has told no address`,
    hint: "name its endpoint with -s",
  });
}
