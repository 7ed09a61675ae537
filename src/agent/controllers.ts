import { ApiRefusal, openApi } from "#api/client.ts";
import type { ApiClient, Credentials } from "#api/client.ts";
import { formatEndpoint } from "#api/endpoint.ts";
import type { Endpoint } from "#api/endpoint.ts";
import { credentialsVersion, loadCredentials } from "#api/credentials.ts";
import type { CredentialFiles, LoadedCredentials } from "#api/credentials.ts";
import type { Log } from "#api/log.ts";
import { KcoreError } from "#errors/problem.ts";

/** The controllers of this node, tried in order, beginning with the one that answered last. */
export interface Controllers {
  /** Runs `use` with the first controller that can be reached. @throws the last controller's error when none can */
  readonly withFirst: <Result>(use: (client: ApiClient, endpoint: Endpoint) => Promise<Result>) => Promise<Result>;
  /** Asks one controller with other credentials than ours, on a connection of its own. */
  readonly tryWith: <Result>(
    endpoint: Endpoint,
    credentials: Credentials,
    use: (client: ApiClient, endpoint: Endpoint) => Promise<Result>,
  ) => Promise<Result>;
  /** Adds controllers that were told of, behind those that are known; gives the new ones. */
  readonly learn: (endpoints: readonly Endpoint[]) => readonly string[];
  /** Loads the certificate again if its files changed; says whether they did. */
  readonly reloadIfChanged: () => Promise<boolean>;
  readonly credentials: () => LoadedCredentials;
  /** The endpoint that answered last. */
  readonly current: () => string | undefined;
  readonly close: () => void;
}

/** A controller that does not answer must not use up the time in which the others would. */
const timeoutMs = 5_000;

export async function openControllers({
  endpoints: configured,
  files,
  log,
  clock,
  signal,
}: {
  readonly endpoints: readonly Endpoint[];
  readonly files: CredentialFiles;
  readonly log: Log;
  readonly clock: () => number;
  readonly signal: AbortSignal;
}): Promise<Controllers> {
  let credentials = await loadCredentials(files, "node");
  let seen = credentials.version;
  const endpoints = [...configured];
  let preferred = 0;
  let current: string | undefined;
  const clients = new Map<Endpoint, ApiClient>();
  const close = (): void => {
    for (const client of clients.values()) client.close();
    clients.clear();
  };
  const clientOf = (endpoint: Endpoint): ApiClient => {
    const client = clients.get(endpoint) ?? openApi({ endpoint, credentials, clock, timeoutMs });
    clients.set(endpoint, client);
    return client;
  };
  return {
    credentials: () => credentials,
    current: () => current,
    close,
    async withFirst(use) {
      let failure: unknown = new Error("no controller is configured");
      for (let step = 0; step < endpoints.length; step++) {
        const index = (preferred + step) % endpoints.length;
        const endpoint = endpoints[index] as Endpoint;
        try {
          const result = await use(clientOf(endpoint), endpoint);
          preferred = index;
          current = formatEndpoint(endpoint);
          return result;
        } catch (error) {
          if (signal.aborted || isFinal(error)) throw error;
          failure = error;
          const message = error instanceof Error ? error.message : String(error);
          log.warn("a controller could not be used", { controller: formatEndpoint(endpoint), error: message });
        }
      }
      throw failure;
    },
    async tryWith(endpoint, other, use) {
      const client = openApi({ endpoint, credentials: other, clock, timeoutMs, signal });
      try {
        return await use(client, endpoint);
      } finally {
        client.close();
      }
    },
    learn(told) {
      const known = new Set(endpoints.map(formatEndpoint));
      const fresh = told.filter((endpoint) => !known.has(formatEndpoint(endpoint)));
      endpoints.push(...fresh);
      return fresh.map(formatEndpoint);
    },
    async reloadIfChanged() {
      const version = await credentialsVersion(files);
      if (version === seen) return false;
      seen = version;
      const fresh = await loadCredentials(files, "node");
      const before = credentials.identity;
      if (fresh.identity.id !== before.id || fresh.identity.cluster !== before.cluster) {
        throw new KcoreError({
          code: "CONFIG_INVALID",
          message: `${files.certFile} is now the certificate of another node (${fresh.identity.id})`,
          hint: "systemctl restart kcore-node-agent, if that is meant",
        });
      }
      credentials = fresh;
      close();
      return true;
    },
  };
}

/**
 * A refusal that every controller would give: what the cluster decided about this node. Others (a key that a
 * controller was not told of yet, one that has not caught up, that is busy or full) are reasons to ask the next.
 */
const decisions = new Set(["NODE_REJECTED", "NODE_REMOVED", "KEY_REVOKED", "NODE_UNKNOWN", "API_INVALID"]);

function isFinal(error: unknown): boolean {
  return error instanceof ApiRefusal && decisions.has(error.reason);
}
