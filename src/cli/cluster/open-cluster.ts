import { askFirst, askOne } from "#api/ask.ts";
import { openApi, type ApiClient, type Credentials } from "#api/client.ts";
import { formatEndpoint, parseEndpoint } from "#api/endpoint.ts";
import { loadContext } from "#pki/contexts.ts";
import { contextHome } from "./context-home.ts";
import type { ClusterFlags } from "../options.ts";

/** The cluster that a command is about: who asks, and whom. */
export interface Cluster {
  readonly context: string;
  /** Where the context's CA and issued certificates lie. */
  readonly folder: string;
  /** `host:port`, in the order in which they are asked. */
  readonly endpoints: readonly string[];
  readonly credentials: Credentials;
  /**
   * Asks the first controller that can be reached, and says on stderr which ones could not.
   * @throws KcoreError with one problem for each controller tried; CLUSTER_UNKNOWN when none is known
   */
  readonly ask: <Result>(
    work: (client: ApiClient) => Promise<Result>,
    options?: { readonly timeoutMs?: number },
  ) => Promise<Result>;
  /** Asks this very controller; with `serverKeys` only who shows one of them. @throws KcoreError */
  readonly askAt: <Result>(
    endpoint: string,
    work: (client: ApiClient) => Promise<Result>,
    options?: { readonly timeoutMs?: number; readonly serverKeys?: readonly string[] },
  ) => Promise<Result>;
  /** A connection to this very controller, for what goes on; to be closed. @throws KcoreError USAGE, API_UNTRUSTED */
  readonly connect: (endpoint: string) => ApiClient;
}

/**
 * Opens the chosen context's cluster; `-s` names other controllers than the context does.
 * @throws KcoreError PKI_CONTEXT_UNKNOWN, CONFIG_INVALID, FILE_UNREADABLE, USAGE
 */
export async function openCluster({ context, controller: given = [] }: ClusterFlags): Promise<Cluster> {
  const { name, folder, controllers, ca, cert, key } = await loadContext(contextHome(), context);
  const credentials = { ca, cert, key };
  const named = (given.length > 0 ? given : controllers).map((text) => formatEndpoint(parseEndpoint(text)));
  const endpoints = [...new Set(named)];
  const common = { credentials, clock: Date.now };
  return {
    context: name,
    folder,
    endpoints,
    credentials,
    ask: (work, options = {}) =>
      askFirst(
        {
          ...common,
          ...options,
          endpoints,
          onSkipped: (problems) => {
            for (const { message, code } of problems)
              process.stderr.write(`${message}  [${code}]; the next one is asked\n`);
          },
        },
        work,
      ),
    connect: (endpoint) => openApi({ ...common, endpoint: parseEndpoint(endpoint) }),
    askAt: (endpoint, work, options = {}) => askOne(endpoint, { ...common, ...options }, work),
  };
}
