import { wait } from "#base/wait.ts";
import { askInTurn, type AskInTurn, type AskOptions, type Controllers } from "./ask-in-turn.ts";
import { openApi, type ApiClient, type Credentials } from "./client.ts";
import { controllerPort, formatEndpoint, parseEndpoint } from "./endpoint.ts";

/** The controllers of a cluster, and the client that asks them. */
export interface Asking extends AskInTurn {
  /** A function is called for each new connection. */
  readonly credentials: Credentials | (() => Credentials);
  readonly clock: () => number;
  /** The id of the run on whose behalf is asked. */
  readonly run?: string;
  /** The limit of one call, by default 5 s: a controller that does not answer must leave time for the others. */
  readonly timeoutMs?: number;
}

export type { AskOptions, Controllers } from "./ask-in-turn.ts";

const defaultTimeoutMs = 5_000;

export function openControllers(asking: Asking): Controllers {
  const { credentials, endpoints: _, onFailed: __, isPatient: ___, ...common } = asking;
  return askInTurn(asking, {
    connect: (endpoint, options) =>
      openApi({
        timeoutMs: defaultTimeoutMs,
        ...common,
        ...options,
        endpoint: parseEndpoint(endpoint),
        credentials: typeof credentials === "function" ? credentials() : credentials,
      }),
    monotonic: () => performance.now(),
    sleep: wait,
  });
}

/** Asks once, and closes the connections: see {@link Controllers.ask}. */
export async function askFirst<Result>(
  asking: Asking & Pick<AskOptions, "serverKeys">,
  work: (client: ApiClient) => Promise<Result>,
): Promise<Result> {
  const controllers = openControllers(asking);
  try {
    return await controllers.ask(work);
  } finally {
    controllers.close();
  }
}

/** The endpoint of the controller on a host. */
export function endpointOf(host: string, port = controllerPort): string {
  return formatEndpoint({ host, port });
}
