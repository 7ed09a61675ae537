import { KcoreError } from "#errors/problem.ts";
import type { Problem } from "#errors/problem.ts";
import { ApiRefusal, openApi } from "./client.ts";
import type { ApiClient, Credentials } from "./client.ts";
import { controllerPort, formatEndpoint, parseEndpoint } from "./endpoint.ts";

/** The controllers of a cluster as one asks them from outside. */
export interface Controllers {
  /** `host:port`, in the order in which they are tried. */
  readonly endpoints: readonly string[];
  readonly credentials: Credentials;
  readonly clock: () => number;
  readonly signal?: AbortSignal;
  /** The id of the run on whose behalf is asked. */
  readonly run?: string;
  /** The keys of which the controller must show one; absent: anybody's who is a controller by the CA's word. */
  readonly serverKeys?: readonly string[];
  /** For one call; 5 s unless told otherwise. */
  readonly timeoutMs?: number;
  /** Told when a controller could not be reached and the next one is asked. */
  readonly onSkipped?: (problems: readonly Problem[]) => void;
}

/**
 * Asks the first controller that can be reached. A refusal is an answer: no other is asked.
 * @throws KcoreError with one problem for each controller tried; CLUSTER_UNKNOWN when none is known
 */
export async function askFirst<Result>(
  { endpoints, ...options }: Controllers,
  ask: (client: ApiClient) => Promise<Result>,
): Promise<Result> {
  const problems: Problem[] = [];
  for (const [index, endpoint] of endpoints.entries()) {
    try {
      return await askOne(endpoint, options, ask);
    } catch (error) {
      if (!(error instanceof KcoreError) || error instanceof ApiRefusal) throw error;
      if (index < endpoints.length - 1) options.onSkipped?.(error.problems);
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new KcoreError(problems, { exitCode: 3 });
  throw new KcoreError({
    code: "CLUSTER_UNKNOWN",
    message: "no controller of this cluster is known yet",
    hint: "deploy a node with the role controller: kcore orchestrate deploy_node NODE",
  });
}

/** Asks one controller, and closes the connection afterwards. @throws KcoreError */
export async function askOne<Result>(
  endpoint: string,
  { credentials, clock, signal, run, serverKeys, timeoutMs = 5_000 }: Omit<Controllers, "endpoints">,
  ask: (client: ApiClient) => Promise<Result>,
): Promise<Result> {
  signal?.throwIfAborted();
  const client = openApi({
    endpoint: parseEndpoint(endpoint),
    credentials,
    clock,
    timeoutMs,
    ...(signal && { signal }),
    ...(run !== undefined && { run }),
    ...(serverKeys && { serverKeys }),
  });
  try {
    return await ask(client);
  } finally {
    client.close();
  }
}

/** The endpoint of the controller on a host. */
export function endpointOf(host: string, port = controllerPort): string {
  return formatEndpoint({ host, port });
}
