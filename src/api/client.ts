import { X509Certificate } from "node:crypto";
import { Agent, request } from "node:https";
import type { IncomingMessage } from "node:http";
import { checkServerIdentity } from "node:tls";
import { omitUndefined } from "#base/omit-undefined.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import { identityOf } from "#pki/identity.ts";
import { checkCredentials, checkKey, checkRole, connectionProblem } from "./connection-trust.ts";
import { formatEndpoint, type ApiEndpoint } from "./endpoint.ts";
import { issuerHeaders } from "./issuer-header.ts";
import { lateRenewalProtocol } from "./late-renewal.ts";
import { methods, type BodyOf, type Method, type MethodName, type PlainMethodName, type ReplyOf } from "./methods.ts";
import { RefusalBody } from "./controller-schemas.ts";

/** PEM texts: the cluster's root (`ca`), the client's own chain and its key. */
export interface Credentials {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** The value of `{id}` in the path. */
  readonly id?: string;
}

/** A controller's API as seen from one client. */
export interface ApiClient {
  readonly endpoint: ApiEndpoint;
  /** Asks, and returns the checked answer. @throws KcoreError API_UNREACHABLE, API_UNTRUSTED; {@link ApiRefusal} for the controller's refusal; a signal's reason */
  readonly call: <Name extends PlainMethodName>(
    name: Name,
    body: BodyOf<Name>,
    options?: CallOptions,
  ) => Promise<ReplyOf<Name>>;
  /**
   * The answer of a streaming method as its bytes arrive; it ends with an error after 45 s of silence.
   * @throws KcoreError as `call` does, until the answer begins
   */
  readonly open: <Name extends OpenedMethodName>(
    name: Name,
    body: BodyOf<Name>,
    options?: CallOptions,
  ) => Promise<IncomingMessage>;
  readonly close: () => void;
}

/** Methods whose answer the caller reads while it arrives. */
export type OpenedMethodName = "backup" | "bundle" | "watch";

/** A controller's refusal, or an answer that this version cannot read (ANSWER_INVALID). */
export class ApiRefusal extends KcoreError {
  readonly status: number;
  /** The refusal's own code, such as NODE_UNKNOWN. */
  readonly reason: string;
  readonly refusal: RefusalBody;

  constructor(endpoint: ApiEndpoint, status: number, refusal: RefusalBody) {
    const { code, message, hint, detail } = refusal;
    super(
      {
        code: "API_REFUSED",
        message: `controller ${formatEndpoint(endpoint)} refused: ${message} (${status} ${code})`,
        ...omitUndefined({ hint, detail }),
      },
      { exitCode: exitCodes.failed },
    );
    this.status = status;
    this.reason = code;
    this.refusal = refusal;
  }
}

/** Milliseconds of silence after which a stream counts as broken: an idle watch sends a line every 15 s. */
const longestSilenceMs = 45_000;
/** The header with the id of the run that sends a request, for the controllers' audit. */
export const runHeader = "x-kcore-run";
/** Most bytes of an answer, unless it is a list or a stream. */
const replyLimit = 16 * 1024 * 1024;
/** Most bytes of a list, which grows with the cluster. */
const listLimit = 256 * 1024 * 1024;

/**
 * Opens a client of one controller: TLS 1.3, trusting the cluster's own root only, and only a server whose
 * certificate names this host and the role controller of our cluster. Sessions are never resumed, so that each
 * connection is verified anew (S-10). Every call ends after `timeoutMs`; each piece of a list starts that time anew.
 * @throws KcoreError as checkCredentials does
 */
export function openApi({
  endpoint,
  credentials,
  clock,
  timeoutMs = 10_000,
  signal: always,
  run,
  serverKeys,
}: {
  readonly endpoint: ApiEndpoint;
  readonly credentials: Credentials;
  readonly clock: () => number;
  readonly timeoutMs?: number;
  /** Ends every call of this client. */
  readonly signal?: AbortSignal;
  /** The id of the run that asks. */
  readonly run?: string;
  /** As in QuestionOptions. */
  readonly serverKeys?: readonly string[];
}): ApiClient {
  const isRenewalOnly = checkCredentials(credentials, clock());
  const { cluster, role } = identityOf(new X509Certificate(credentials.cert), "client");
  const issuer = role === "node" ? {} : issuerHeaders(credentials.cert);
  const agent = new Agent({
    ...credentials,
    minVersion: "TLSv1.3",
    keepAlive: true,
    maxCachedSessions: 0,
    maxSockets: 64,
    ...(isRenewalOnly && { ALPNProtocols: [lateRenewalProtocol] }),
    checkServerIdentity: (host, peer) =>
      checkServerIdentity(host, peer) ??
      checkRole(peer, { cluster, rootPem: credentials.ca }) ??
      checkKey(peer, serverKeys),
  });
  /** Runs `work`, which sends the request and reads its answer, within the time limit, which `restart` starts anew, and until a signal. */
  const ask = async <Result>(
    name: MethodName,
    body: unknown,
    { signal, id = "" }: CallOptions,
    work: (send: (silenceMs?: number) => Promise<IncomingMessage>, restart: () => void) => Promise<Result>,
  ): Promise<Result> => {
    const stops = [signal, always].filter((stop) => stop !== undefined);
    for (const stop of stops) stop.throwIfAborted();
    // By hand: AbortSignal.timeout and .any cost more than the rest of a small call.
    const limits = new AbortController();
    let isTimedOut = false;
    const timer = setTimeout(() => {
      isTimedOut = true;
      limits.abort();
    }, timeoutMs);
    const stopped = (): void => limits.abort();
    for (const stop of stops) stop.addEventListener("abort", stopped);
    const { verb, path } = methods[name];
    const common = { agent, endpoint, verb, issuer, path: path.replace("{id}", encodeURIComponent(id)), run };
    try {
      return await work(
        (silenceMs) => {
          // A streamed answer outlives the time limit, but not the signals.
          const until = silenceMs === undefined ? limits.signal : AbortSignal.any([limits.signal, ...stops]);
          return sendRequest({ ...common, body: JSON.stringify(body), signal: until, silenceMs });
        },
        () => void timer.refresh(),
      );
    } catch (error) {
      if (error instanceof KcoreError) throw error;
      for (const stop of stops) stop.throwIfAborted();
      throw connectionProblem(endpoint, isTimedOut ? new Error(`no answer within ${timeoutMs / 1000} s`) : error);
    } finally {
      clearTimeout(timer);
      for (const stop of stops) stop.removeEventListener("abort", stopped);
    }
  };
  return {
    endpoint,
    close: () => agent.destroy(),
    open: (name, body, options = {}) =>
      ask(name, body, options, async (send) => {
        const response = await send(longestSilenceMs);
        if (response.statusCode === 200) return response;
        throw refusalIn(endpoint, response.statusCode ?? 0, parseJson(await readBody(response)));
      }),
    call: (name, body, options = {}) =>
      ask(name, body, options, async (send, restart) => {
        const response = await send().catch((error: unknown) => {
          // The server usually had closed this idle connection and processed nothing, so the request is sent again on a new one.
          if (error instanceof StaleConnection) return send();
          throw error;
        });
        const isList = (methods[name] as Method).form === "list";
        const text = await (isList ? readBody(response, listLimit, restart) : readBody(response));
        return readAnswer(name, endpoint, response.statusCode ?? 0, text);
      }),
  };
}

/** The reset of a reused connection, as of one that the server had closed before it received the request. */
class StaleConnection extends Error {}

interface ApiRequest {
  readonly agent: Agent;
  readonly endpoint: ApiEndpoint;
  readonly verb: string;
  readonly path: string;
  /** The header that shows who issued our certificate. */
  readonly issuer: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signal: AbortSignal;
  /** The longest silence of the connection in milliseconds; undefined: no limit beside the signal. */
  readonly silenceMs: number | undefined;
  readonly run: string | undefined;
}

/** Sends a request and resolves when its answer begins. */
function sendRequest({
  agent,
  endpoint,
  verb,
  path,
  issuer,
  body,
  signal,
  silenceMs,
  run,
}: ApiRequest): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...(verb === "POST" ? { "content-type": "application/json", "content-length": Buffer.byteLength(body) } : {}),
      ...issuer,
      ...(run === undefined ? {} : { [runHeader]: run }),
    };
    const outgoing = request({ agent, host: endpoint.host, port: endpoint.port, method: verb, path, headers, signal });
    outgoing.once("error", (error: NodeJS.ErrnoException) => {
      reject(outgoing.reusedSocket && error.code === "ECONNRESET" ? new StaleConnection(error.message) : error);
    });
    if (silenceMs !== undefined)
      outgoing.setTimeout(silenceMs, () => outgoing.destroy(new Error(`silent for ${silenceMs / 1000} s`)));
    outgoing.once("response", resolve);
    outgoing.end(verb === "POST" ? body : undefined);
  });
}

/** Reads an answer of at most `limit` bytes to its end; `onPiece` is called for each piece. */
function readBody(response: IncomingMessage, limit = replyLimit, onPiece?: () => void): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    response.on("data", (chunk: Buffer) => {
      size += chunk.length;
      onPiece?.();
      if (size <= limit) return void chunks.push(chunk);
      response.destroy(new Error(`the answer is larger than ${limit / 2 ** 20} MiB`));
    });
    response.once("end", () => resolve(Buffer.concat(chunks).toString("utf8")));
    response.once("error", reject);
    response.once("close", () => reject(new Error("the answer broke off")));
  });
}

const noReason = { code: "UNKNOWN", message: "no reason given" };

function refusalIn(endpoint: ApiEndpoint, status: number, json: unknown): ApiRefusal {
  const refusal = RefusalBody.safeParse(json);
  return new ApiRefusal(endpoint, status, refusal.success ? refusal.data : noReason);
}

function readAnswer<Name extends PlainMethodName>(
  name: Name,
  endpoint: ApiEndpoint,
  status: number,
  text: string,
): ReplyOf<Name> {
  const method: Method = methods[name];
  if (status === 200 && method.form === "text") return text as ReplyOf<Name>;
  const json = parseJson(text);
  // A controller that is not ready answers `ready` with 503 and its health.
  const reply =
    status === 200 || (status === 503 && name === "ready") ? methods[name].reply.safeParse(json) : undefined;
  if (reply?.success) return reply.data as ReplyOf<Name>;
  throw status === 200
    ? new ApiRefusal(endpoint, status, {
        code: "ANSWER_INVALID",
        message: "its answer is not what this version of kcore expects",
      })
    : refusalIn(endpoint, status, json);
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
