import { retry } from "#base/wait.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { ApiRefusal, type ApiClient } from "./client.ts";

/** Limits of one question. */
export interface AskOptions {
  /** The endpoints to try for this question, in this order, in place of the usual ones: for instance all addresses of one controller. */
  readonly endpoints?: readonly string[];
  /** SHA-256 of the keys of which the controller must show one; absent: every key with a controller's certificate will do. */
  readonly serverKeys?: readonly string[];
  readonly timeoutMs?: number;
}

/** The controllers of one cluster, asked in turn over connections that stay open. */
export type Controllers = ReturnType<typeof askInTurn>;

/** Connections to controllers, and time. */
export interface AskPorts {
  /** A client of this very controller. @throws KcoreError USAGE, API_UNTRUSTED */
  readonly connect: (endpoint: string, options: Pick<AskOptions, "serverKeys" | "timeoutMs">) => ApiClient;
  /** Ms since any moment; never goes back. */
  readonly monotonic: () => number;
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<unknown>;
}

/** The controllers to ask, and how. */
export interface AskInTurn {
  /** `host:port`, in the order in which they are tried. */
  readonly endpoints: readonly string[];
  readonly signal?: AbortSignal;
  /** `false`: does not wait for a controller that has just started. For callers that ask again later anyway. */
  readonly isPatient?: boolean;
  /** Called when one of these endpoints could not be used; `isLast`: no other one is asked. */
  readonly onFailed?: (failure: KcoreError, endpoint: string, isLast: boolean) => void;
}

/** Ms to wait for a controller that has just started and catches up: in all, and between two questions. */
const catchUp = { limitMs: 3000, everyMs: 200 } as const;

/** Asks one controller after the other until one answers. */
export function askInTurn(
  { endpoints: given, signal: always, isPatient = true, onFailed }: AskInTurn,
  { connect, monotonic, sleep }: AskPorts,
) {
  const endpoints = [...given];
  const clients = new Map<string, ApiClient>();
  let current: string | undefined;
  /** A client of this very controller. @throws KcoreError USAGE, API_UNTRUSTED */
  const clientAt = (endpoint: string): ApiClient => {
    const client = clients.get(endpoint) ?? connect(endpoint, {});
    clients.set(endpoint, client);
    return client;
  };
  const askAt = async <Result>(
    endpoint: string,
    work: (client: ApiClient) => Promise<Result>,
    { serverKeys, timeoutMs }: AskOptions,
  ): Promise<Result> => {
    always?.throwIfAborted();
    if (serverKeys === undefined && timeoutMs === undefined) return work(clientAt(endpoint));
    const client = connect(endpoint, { ...(serverKeys && { serverKeys }), ...(timeoutMs && { timeoutMs }) });
    return work(client).finally(() => client.close());
  };
  return {
    endpoints: endpoints as readonly string[],
    clientAt,
    /** The endpoint that answered last. */
    current: (): string | undefined => current,
    /**
     * Asks the controller that answered last, then the others in turn until one answers. A refusal that every other would give as
     * well is final. If none answers, but one has just started, all are asked again for 3 s.
     * @throws KcoreError the last refusal, else a problem for each controller tried; CLUSTER_UNKNOWN when none is known
     */
    ask: async <Result>(work: (client: ApiClient) => Promise<Result>, options: AskOptions = {}): Promise<Result> => {
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
            if (!(error instanceof KcoreError) || isFinal(error)) throw error;
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
      const waiting = { ...catchUp, limitMs, signal: always, now: monotonic, sleep };
      return retry(askAll, { ...waiting, mayHelp: () => mayHelp });
    },
    /** Appends the endpoints that are not known yet, and returns those. */
    learn(more: readonly string[]): readonly string[] {
      const fresh = more.filter((endpoint) => !endpoints.includes(endpoint));
      endpoints.push(...fresh);
      return fresh;
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

function beginningWith(current: string | undefined, endpoints: readonly string[]): readonly string[] {
  const at = current === undefined ? 0 : endpoints.indexOf(current);
  return [...endpoints.slice(at), ...endpoints.slice(0, at)];
}

/** Refusals that concern this controller alone: news has not reached it, or its version lacks the method. */
const localRefusals = new Set([
  "KEY_UNREGISTERED",
  "NODE_PENDING",
  "PKI_PROOF_INVALID",
  "API_UNKNOWN",
  "ANSWER_INVALID",
  "UPDATE_BUNDLE_UNKNOWN",
]);

/** Errors of one controller alone. */
const failures: ReadonlySet<string> = new Set([
  "API_UNREACHABLE",
  "API_UNTRUSTED",
  "RENEWAL_FAILED",
  "UPDATE_BUNDLE_INVALID",
]);

/** Whether every other controller would answer the same. False if this one has not caught up, is busy or is full. */
function isFinal(error: KcoreError): boolean {
  if (!(error instanceof ApiRefusal)) return !error.problems.some(({ code }) => failures.has(code));
  // 401: by its clock our certificate has expired.
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
