import type { QuestionOptions } from "#api/ask.ts";
import type { ApiClient } from "#api/client.ts";
import type { ControllerView } from "#api/controller-schemas.ts";
import { KcoreError } from "#errors/problem.ts";
import { keysIssuedTo } from "#pki/issued.ts";
import type { Cluster } from "../cluster/open-cluster.ts";

/** A registered controller, and its endpoints as this machine knows them. */
export interface KnownController {
  readonly controller: ControllerView;
  /** Endpoints to try, best first; empty if none is known. */
  readonly endpoints: readonly string[];
}

/**
 * Every registered controller, by datacenter and address. Its endpoints are those of the context (or of `-s`) at which it answers,
 * then the address that it announced to the others. @throws KcoreError when no controller answers
 */
export async function allControllers(cluster: Cluster): Promise<readonly KnownController[]> {
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
 * As {@link askController}, but the controller's key must be one that this machine issued a certificate for. Needed before a CA
 * signs: a man in the middle with a stolen sub-CA could else have a key of its own signed. If another machine
 * issued the certificate, the registered keys must do.
 */
export async function askPinned<Result>(
  one: KnownController,
  cluster: Cluster,
  work: (client: ApiClient) => Promise<Result>,
): Promise<Result> {
  const { controllerId, key, nextKey } = one.controller;
  const issued = await keysIssuedTo(cluster.folder, controllerId);
  const registered = [key, nextKey].filter((spki) => spki !== undefined);
  return askController(one, cluster, work, { serverKeys: issued.length > 0 ? issued : registered });
}

/** Asks one controller at the first of its endpoints that answers. @throws KcoreError with a problem for each endpoint */
export async function askController<Result>(
  { controller, endpoints }: KnownController,
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
