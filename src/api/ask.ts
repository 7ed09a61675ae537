import { wait } from "#base/wait.ts";
import { askInTurn, type AskInTurn, type QuestionOptions, type Controllers } from "./ask-in-turn.ts";
import { openApi, type ApiClient, type Credentials } from "./client.ts";
import { controllerPort, formatEndpoint, parseEndpoint } from "./endpoint.ts";

/** A cluster's controllers, and this client's credentials and limits. */
export interface ControllersOptions extends AskInTurn, Pick<QuestionOptions, "serverKeys"> {
  /** A function is called for each new client of a controller, as a certificate may have been renewed. */
  readonly credentials: Credentials | (() => Credentials);
  readonly clock: () => number;
  /** The id of the run that asks, for the controllers' audit. */
  readonly run?: string;
  /** The limit of one call in milliseconds, by default 5 s: a silent controller must leave time for the others. */
  readonly timeoutMs?: number;
}

export type { QuestionOptions, Controllers } from "./ask-in-turn.ts";

const defaultTimeoutMs = 5_000;

/** Clients of a cluster's controllers; each connects with its first question. */
export function openControllers(options: ControllersOptions): Controllers {
  const { credentials, endpoints: _, onFailed: __, isPatient: ___, rank: ____, ...common } = options;
  return askInTurn(options, {
    connect: (endpoint, question) =>
      openApi({
        timeoutMs: defaultTimeoutMs,
        ...common,
        ...question,
        endpoint: parseEndpoint(endpoint),
        credentials: typeof credentials === "function" ? credentials() : credentials,
      }),
    monotonic: () => performance.now(),
    sleep: wait,
  });
}

/** Asks one question as {@link Controllers.ask} does, and closes the connections. */
export async function askOnce<Result>(
  options: ControllersOptions,
  work: (client: ApiClient) => Promise<Result>,
): Promise<Result> {
  const controllers = openControllers(options);
  try {
    return await controllers.ask(work);
  } finally {
    controllers.close();
  }
}

export function controllerEndpoint(host: string, port = controllerPort): string {
  return formatEndpoint({ host, port });
}
