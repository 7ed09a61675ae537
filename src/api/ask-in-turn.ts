import { retry } from "#base/wait.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { ApiRefusal, type ApiClient } from "./client.ts";

export interface QuestionOptions {
  /** Endpoints to try in this order, in place of the cluster's: for instance all addresses of one controller. */
  readonly endpoints?: readonly string[];
  /** The controller must show one of these keys (SHA-256 of the SPKI); absent: any key with a controller's certificate. */
  readonly serverKeys?: readonly string[];
  readonly timeoutMs?: number;
}

/** The controllers of one cluster, asked in turn over connections that stay open. */
export type Controllers = ReturnType<typeof askInTurn>;

/** The effects that askInTurn needs: connections to controllers, and time. */
export interface AskPorts {
  /** A client of the controller at this endpoint. @throws KcoreError USAGE for a text that is no endpoint; as openApi does */
  readonly connect: (endpoint: string, options: Pick<QuestionOptions, "serverKeys" | "timeoutMs">) => ApiClient;
  /** A monotonic clock in milliseconds. */
  readonly monotonic: () => number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

export interface AskInTurn {
  /** `host:port`, in the order of the first question. */
  readonly endpoints: readonly string[];
  /** Orders the endpoints, also those learned later; absent: they keep the given order. */
  readonly rank?: ((endpoint: string) => string) | undefined;
  readonly signal?: AbortSignal;
  /** `false`: does not wait for a controller that has just started, since the caller asks again later anyway. */
  readonly isPatient?: boolean;
  /** Called in the first round of a question without own endpoints, for each endpoint that could not be used; `isLast`: no other follows. */
  readonly onFailed?: (failure: KcoreError, endpoint: string, isLast: boolean) => void;
}

/** Milliseconds to wait for a controller that catches up after its start: in all, and between two rounds. */
const catchUp = { limitMs: 3000, everyMs: 200 } as const;

/** The controllers of a cluster, asked one after the other until one answers. */
export function askInTurn(
  { endpoints: firstEndpoints, rank, signal, isPatient = true, onFailed }: AskInTurn,
  { connect, monotonic, sleep }: AskPorts,
) {
  const endpoints = ranked(firstEndpoints, rank);
  const clients = new Map<string, ApiClient>();
  let current: string | undefined;
  const clientAt = (endpoint: string): ApiClient => {
    const client = clients.get(endpoint) ?? connect(endpoint, {});
    clients.set(endpoint, client);
    return client;
  };
  const askAt = async <Result>(
    endpoint: string,
    work: (client: ApiClient) => Promise<Result>,
    { serverKeys, timeoutMs }: QuestionOptions,
  ): Promise<Result> => {
    signal?.throwIfAborted();
    if (serverKeys === undefined && timeoutMs === undefined) return work(clientAt(endpoint));
    const client = connect(endpoint, { ...(serverKeys && { serverKeys }), ...(timeoutMs && { timeoutMs }) });
    return work(client).finally(() => client.close());
  };
  return {
    endpoints: endpoints as readonly string[],
    /** The client of the controller at this endpoint. @throws KcoreError as AskPorts.connect does */
    clientAt,
    /** The endpoint that answered last. */
    current: (): string | undefined => current,
    /**
     * Asks the controller that answered last, then the others in turn until one answers. A refusal that every controller would
     * give is final. If no controller answers, but one has just started, a patient caller asks all again for 3 s.
     * @throws KcoreError the last refusal, else a problem for each controller that was asked; CLUSTER_UNKNOWN without endpoints; the signal's reason
     */
    ask: async <Result>(
      work: (client: ApiClient) => Promise<Result>,
      options: QuestionOptions = {},
    ): Promise<Result> => {
      let isFirst = true;
      let mayHelp = false;
      const askAll = async (): Promise<Result> => {
        const failures: KcoreError[] = [];
        mayHelp = false;
        const tried = options.endpoints ?? beginningWith(current, endpoints);
        for (const [index, endpoint] of tried.entries()) {
          try {
            const answer = await askAt(endpoint, work, options);
            if (!options.endpoints) current = endpoint;
            return answer;
          } catch (error) {
            if (!(error instanceof KcoreError) || isFinalRefusal(error)) throw error;
            failures.push(error);
            if (!options.endpoints && isFirst) onFailed?.(error, endpoint, index === tried.length - 1);
          }
        }
        isFirst = false;
        // A controller that has just started has done nothing of the request, and will be ready soon.
        mayHelp = failures.some(isCatchingUp);
        throw failureOf(failures);
      };
      const limitMs = isPatient ? catchUp.limitMs : 0;
      const waiting = { ...catchUp, limitMs, signal, now: monotonic, sleep };
      return retry(askAll, { ...waiting, mayHelp: () => mayHelp });
    },
    /** Appends the endpoints that are not known yet, and returns them. */
    learn(more: readonly string[]): readonly string[] {
      const fresh = more.filter((endpoint) => !endpoints.includes(endpoint));
      endpoints.splice(0, Infinity, ...ranked([...endpoints, ...fresh], rank));
      return fresh;
    },
    /** Whether the controller that answered last is the first in the order. */
    isAtFirst: (): boolean => current === endpoints[0],
    /** The next question begins with the first controller, not with the one that answered last. */
    beginWithFirst(): void {
      current = undefined;
    },
    /** Ends all connections; the next question opens new ones. */
    close(): void {
      for (const client of clients.values()) client.close();
      clients.clear();
    },
  };
}

function isCatchingUp(error: KcoreError): boolean {
  return error instanceof ApiRefusal && error.reason === "CONTROLLER_JOINING";
}

function ranked(endpoints: readonly string[], rank: AskInTurn["rank"]): string[] {
  if (!rank) return [...endpoints];
  const ranks = new Map(endpoints.map((endpoint) => [endpoint, rank(endpoint)]));
  return endpoints.toSorted((a, b) => ((ranks.get(a) ?? "") < (ranks.get(b) ?? "") ? -1 : 1));
}

function beginningWith(current: string | undefined, endpoints: readonly string[]): readonly string[] {
  const at = current === undefined ? 0 : endpoints.indexOf(current);
  return [...endpoints.slice(at), ...endpoints.slice(0, at)];
}

/** Codes of refusals that another controller might not give: a change has not reached this one, or its version lacks the method. */
const localRefusals = new Set([
  "KEY_UNREGISTERED",
  "NODE_PENDING",
  "PKI_PROOF_INVALID",
  "API_UNKNOWN",
  "ANSWER_INVALID",
  "UPDATE_BUNDLE_UNKNOWN",
]);

/** Codes of errors that concern one controller alone. */
const localErrors: ReadonlySet<string> = new Set([
  "API_UNREACHABLE",
  "API_UNTRUSTED",
  "RENEWAL_FAILED",
  "UPDATE_BUNDLE_INVALID",
]);

/** Whether every controller would answer the same. False for one that has not caught up, is busy or has a full disk. */
function isFinalRefusal(error: KcoreError): boolean {
  if (!(error instanceof ApiRefusal)) return !error.problems.some(({ code }) => localErrors.has(code));
  // 401: by that controller's clock our certificate has expired.
  return error.status < 500 && error.status !== 401 && error.status !== 429 && !localRefusals.has(error.reason);
}

function failureOf(failures: readonly KcoreError[]): KcoreError {
  const refusal = failures.findLast((failure) => failure instanceof ApiRefusal);
  if (refusal) return refusal;
  const problems = failures.flatMap((failure) => failure.problems);
  if (problems.length > 0) return new KcoreError(problems, { exitCode: exitCodes.unreachable, cause: failures.at(-1) });
  return new KcoreError({
    code: "CLUSTER_UNKNOWN",
    message: "no controller of this cluster is known yet",
    hint: "deploy a node with the role controller: kcore orchestrate deploy_node NODE",
  });
}
