import { ApiRefusal, openApi } from "#api/client.ts";
import type { ApiClient } from "#api/client.ts";
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
  /** Loads the certificate again if its files changed; says whether they did. */
  readonly reloadIfChanged: () => Promise<boolean>;
  readonly credentials: () => LoadedCredentials;
  /** The endpoint that answered last. */
  readonly current: () => string | undefined;
  readonly close: () => void;
}

export async function openControllers({
  endpoints,
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
  let preferred = 0;
  let current: string | undefined;
  const clients = new Map<Endpoint, ApiClient>();
  const close = (): void => {
    for (const client of clients.values()) client.close();
    clients.clear();
  };
  const clientOf = (endpoint: Endpoint): ApiClient => {
    const client = clients.get(endpoint) ?? openApi({ endpoint, credentials, clock });
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

/** A refusal that another controller would give as well. */
function isFinal(error: unknown): boolean {
  return error instanceof ApiRefusal && error.status >= 400 && error.status < 500;
}
