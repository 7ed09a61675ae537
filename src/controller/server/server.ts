import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer, type Server, type ServerOptions } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { describeError, type Log, type LogFields } from "#api/log.ts";
import type { Credentials } from "#api/client.ts";
import { plainAddress } from "#api/listen.ts";
import { issuerHeader } from "#api/issuer-header.ts";
import { lateRenewalProtocol } from "#api/late-renewal.ts";
import {
  findMethod,
  isAudited,
  methods,
  replicationProtocol,
  type AcceptedBodyOf,
  type AnswerOf,
  type ListMethodName,
  type Method,
  type MethodName,
  type PlainMethodName,
} from "#api/methods.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { BastionCas } from "#pki/chain.ts";
import { KcoreError } from "#errors/problem.ts";
import { Busy, Refused } from "../cluster/refused.ts";
import { authorize, deny, type Access } from "./access.ts";
import { openLists, type Listed, type Lists } from "./answer-list.ts";
import { auditFields, auditLog, type Asked } from "./audit.ts";
import { openBodyRoom, readJson } from "./body.ts";
import { callerOf, shownOn, type KnownCaller } from "./caller.ts";
import { connectionsFor, limitsFor, watchConnections, type Connections } from "./connections.ts";
import { limitHandshakes } from "./handshake-limits.ts";
import { endLateConnections, expiredCallerOf, lateRenewalMethods, routeLateRenewals } from "./expired-caller.ts";
import { limitWarnings } from "./log-limit.ts";
import { watchLag, type EventLoopLag } from "./event-loop-lag.ts";
import { limitRate } from "./rate.ts";
import { queueYields } from "./yield-to-loop.ts";

/** The arguments of the function behind a method. */
export interface Call<Name extends MethodName> {
  readonly caller: KnownCaller;
  readonly body: AcceptedBodyOf<Name>;
  /** The path's `{id}`; empty if it has none. */
  readonly id: string;
}

type Returned<Name extends PlainMethodName> = Name extends ListMethodName ? Listed<AnswerOf<Name>> : AnswerOf<Name>;

export type Handlers = {
  readonly [Name in PlainMethodName]: (call: Call<Name>) => Promise<Returned<Name>> | Returned<Name>;
};

/** Methods with a streamed answer: they own the response, or the socket, from here. */
export interface Streams {
  readonly watch: (call: Call<"watch">, response: ServerResponse) => Promise<void> | void;
  readonly backup: (call: Call<"backup">, response: ServerResponse) => Promise<void>;
  readonly bundle: (call: Call<"bundle">, response: ServerResponse) => Promise<void>;
  readonly replicate: (caller: KnownCaller, socket: Duplex, head: Buffer) => void;
}

export interface ApiServerOptions {
  readonly credentials: Credentials;
  readonly cluster: string;
  /** The CAs that may have issued an operator's or a controller's certificate. */
  readonly bastion: BastionCas;
  readonly handlers: Handlers;
  readonly streams: Streams;
  readonly access: Access;
  readonly log: Log;
  /** Called with the fields of the audit's line, for each call that has one. */
  readonly trail: (fields: LogFields) => void;
  readonly clock: () => number;
  readonly monotonic: () => number;
  /** The number of files that this process may have open; absent: enough. */
  readonly openFiles?: number;
  /** Called with each answer, for the metrics. */
  readonly onAnswer?: (name: MethodName | "unknown", status: number, ms: number) => void;
}

export interface ApiServer {
  readonly server: Server;
  readonly connections: Connections;
  /** Uses a new certificate for new connections. */
  readonly use: (context: Pick<Credentials, "ca" | "cert" | "key">) => void;
  /** Answers the requests under way, for 5 s at most. */
  readonly close: () => Promise<void>;
}

const nodeRate = { perSecond: 20, burst: 100 };
/** The rate of a node's writes, and of its renewals, which leave a record for ever: by id, for a renewal changes the key. */
const nodeChangeRate = { perSecond: 0.5, burst: 30 };
const renewalRate = { perSecond: 1 / 60, burst: 10 };

/** The HTTPS server of a controller: TLS 1.3, every client with a certificate of our CA, nothing but the methods table. */
export function createApiServer(given: ApiServerOptions): ApiServer {
  const { trail } = given;
  const log = limitWarnings(given.log, given.monotonic);
  const audit = limitWarnings(auditLog(given.log, trail), given.monotonic);
  const options = { ...given, log, audit };
  const { credentials } = options;
  const maxConnections = connectionsFor(options.openFiles);
  const common: ServerOptions = {
    ca: credentials.ca,
    cert: credentials.cert,
    key: credentials.key,
    minVersion: "TLSv1.3",
    requestCert: true,
    handshakeTimeout: 5_000,
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    connectionsCheckingInterval: 5_000,
    maxHeaderSize: 16 * 1024,
  };
  // Longer than the agents' heartbeat, so that each keeps its connection.
  const server = createServer({ ...common, rejectUnauthorized: true, keepAliveTimeout: 75_000 });
  server.maxConnections = maxConnections;
  // Never listens: it gets the connections that request it, for two methods (F-25).
  const late = createServer({
    ...common,
    rejectUnauthorized: false,
    ALPNProtocols: [lateRenewalProtocol],
    keepAliveTimeout: 5_000,
  });
  routeLateRenewals(server, late);
  endLateConnections(late);
  const limits = limitsFor(maxConnections);
  const handshakes = limitHandshakes(server, limits, options.monotonic);
  const connections = watchConnections(limits);
  const lag = watchLag(options.monotonic);
  const watched = { connections, lag };
  const { cluster, bastion, clock } = options;
  const usual = new Requests(options, watched, (socket, issuer) =>
    callerOf(socket, { cluster, bastion, issuer, now: clock() }),
  );
  // Counted before the first request: idle connections must not take all the room.
  server.on("secureConnection", (socket) => {
    const who = shownBy(socket, cluster);
    if (!connections.arrived(socket, who?.key ?? "", who?.identity.role ?? "node")) socket.destroy();
  });
  const rootPem = credentials.ca;
  const renewals = new Requests(
    options,
    watched,
    (socket) => expiredCallerOf(socket, { cluster, rootPem, now: clock() }),
    lateRenewalMethods,
  );
  serve(server, usual, log);
  serve(late, renewals, log);
  return {
    server,
    connections,
    use(context) {
      for (const each of [server, late]) each.setSecureContext({ ...context, minVersion: "TLSv1.3" });
    },
    async close() {
      lag.stop();
      handshakes.close();
      late.closeAllConnections();
      await close(server);
    },
  };
}

/** Undefined for an unacceptable certificate; the first request gets the reason. */
function shownBy(socket: TLSSocket, cluster: string): KnownCaller | undefined {
  try {
    return shownOn(socket, cluster);
  } catch (error) {
    if (error instanceof Refused) return undefined;
    throw error;
  }
}

function serve(server: Server, requests: Requests, log: Log): void {
  server.maxHeadersCount = 64;
  server.on("request", (request, response) => {
    requests.answer(request, response).catch((error: unknown) => {
      log.error("a request could not be answered", describeError(error));
      response.destroy();
    });
  });
  server.on("upgrade", (request, socket, head) => requests.upgrade(request, socket, head));
  server.on("tlsClientError", (error, socket) => {
    const { authorizationError } = socket as { authorizationError?: unknown };
    // Node ends a connection whose certificate OpenSSL refused without a word; the reason stays on the socket.
    const why = typeof authorizationError === "string" ? { reason: authorizationError } : describeError(error);
    log.warn("a TLS connection was refused", { from: addressOf(socket), ...why });
    socket.destroy();
  });
  // Without free files a connection may fail to be accepted; all others are served on.
  server.on("error", (error) => {
    if (server.listening) log.error("a connection could not be accepted", describeError(error));
  });
  server.on("clientError", (_error, socket) => socket.destroy());
}

async function close(server: Server): Promise<void> {
  if (!server.listening) return;
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeIdleConnections();
  const hurry = setTimeout(() => server.closeAllConnections(), 5_000);
  await closed;
  clearTimeout(hurry);
}

type RequestOptions = ApiServerOptions & {
  /** The log of the audit's lines. */
  readonly audit: Log;
};

class Requests {
  readonly #options: RequestOptions;
  readonly #connections: Connections;
  readonly #lag: EventLoopLag;
  readonly #lists: Lists = openLists(queueYields());
  readonly #bodies = openBodyRoom();
  readonly #isInRate: (key: string) => boolean;
  readonly #mayChange: (id: string) => boolean;
  readonly #mayRenew: (id: string) => boolean;
  readonly #identify: (socket: TLSSocket, issuer: string | undefined) => KnownCaller;
  readonly #only: ReadonlySet<MethodName> | undefined;

  constructor(
    options: RequestOptions,
    { connections, lag }: { readonly connections: Connections; readonly lag: EventLoopLag },
    identify: (socket: TLSSocket, issuer: string | undefined) => KnownCaller,
    only?: ReadonlySet<MethodName>,
  ) {
    this.#options = options;
    this.#connections = connections;
    this.#lag = lag;
    this.#identify = identify;
    this.#only = only;
    this.#isInRate = limitRate(nodeRate, options.monotonic);
    this.#mayChange = limitRate(nodeChangeRate, options.monotonic);
    this.#mayRenew = limitRate(renewalRate, options.monotonic);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { log, audit, monotonic, onAnswer } = this.#options;
    const began = monotonic();
    let asked: Asked | undefined;
    let status: number;
    let code: string | undefined;
    try {
      asked = this.#recognise(request);
      if (isAudited(asked.name)) response.setHeader("x-request-id", asked.requestId);
      this.#admit(asked);
      status = await this.#handle(asked, request, response);
    } catch (error) {
      const refused = asRefusal(error, log);
      ({ status, code } = refused);
      if (status === 401 || status === 403) {
        log.warn("a request was refused", {
          from: plainAddress(request.socket.remoteAddress),
          code: refused.code,
          reason: refused.message,
        });
      }
      if (response.headersSent) {
        response.destroy();
      } else {
        // The rest of the body is not worth reading; and a connection that was not admitted must not stay.
        const isIn = this.#connections.has(request.socket as TLSSocket);
        if (!request.complete || !isIn) response.setHeader("connection", "close");
        if (refused instanceof Busy) response.setHeader("retry-after", refused.retryAfterSecs);
        send(response, status, JSON.stringify(refused.toRefusal()));
      }
    } finally {
      this.#bodies.release(request);
    }
    // Here, for every method, so that no new one can be forgotten.
    if (asked && isAudited(asked.name, asked.reply)) {
      const fields = auditFields(asked, request, { status, ...omitUndefined({ code }) });
      // Refused callers must not fill the log: warnings are bounded.
      if ([401, 403].includes(status) || code === "API_BUSY") audit.warn("audit", fields);
      else audit.info("audit", fields);
    }
    onAnswer?.(asked?.name ?? "unknown", status, monotonic() - began);
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    try {
      const asked = this.#recognise(request);
      this.#admit(asked);
      const { name, caller } = asked;
      if (name !== "replicate" || request.headers.upgrade !== replicationProtocol)
        throw new Refused(400, "API_UNKNOWN", `only ${replicationProtocol} is spoken here`);
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${replicationProtocol}\r\n\r\n`,
      );
      this.#options.streams.replicate(caller, socket, head);
    } catch (error) {
      const refused = asRefusal(error, this.#options.log);
      const { code, message: reason } = refused;
      this.#options.log.warn("a replication stream was refused", {
        from: plainAddress(request.socket.remoteAddress),
        code,
        reason,
      });
      const text = JSON.stringify(refused.toRefusal());
      const head = [
        `HTTP/1.1 ${refused.status} Refused`,
        "content-type: application/json",
        `content-length: ${Buffer.byteLength(text)}`,
        "connection: close",
      ];
      socket.end(`${head.join("\r\n")}\r\n\r\n${text}`);
    }
  }

  /** The caller and the method of a request. */
  #recognise(request: IncomingMessage): Asked {
    const socket = request.socket as TLSSocket;
    const issuer = request.headers[issuerHeader];
    const caller = this.#identify(socket, typeof issuer === "string" ? issuer : undefined);
    this.#connections.admit(socket, caller);
    if (caller.identity.role === "node" && !this.#isInRate(caller.key))
      throw new Busy(429, "too many requests with this key");
    const url = request.url ?? "";
    const mark = url.indexOf("?");
    const path = mark < 0 ? url : url.slice(0, mark);
    const found = findMethod(request.method ?? "", path);
    if (!("name" in found)) {
      throw found.wrongVerb
        ? new Refused(405, "API_UNKNOWN", `${path.slice(0, 200)} is not asked by ${request.method}`)
        : new Refused(404, "API_UNKNOWN", `there is no ${path.slice(0, 200)}`);
    }
    const { name, id = "" } = found;
    return { name, id, caller, requestId: randomUUID() };
  }

  /** Whether the caller may call the method. @throws Refused */
  #admit({ name, id, caller }: Asked): void {
    if (this.#only?.has(name) === false) deny(caller, `ask ${methods[name].path} with a certificate that has expired`);
    authorize(name, caller, id);
    this.#options.access.check(name, caller);
    // Only now: a caller that is not this node must not use up the node's rate.
    if (caller.identity.role !== "node" || !isAudited(name)) return;
    if (!this.#mayChange(caller.id) || (name === "renew" && !this.#mayRenew(caller.id)))
      throw new Busy(429, `node ${caller.id} changes too much, too often`, 2);
  }

  async #handle(asked: Asked, request: IncomingMessage, response: ServerResponse): Promise<number> {
    const { name, id, caller } = asked;
    const { handlers, streams, access, monotonic } = this.#options;
    const began = monotonic();
    if (name === "replicate") throw new Refused(426, "API_UNKNOWN", `ask with upgrade: ${replicationProtocol}`);
    const method: Method = methods[name];
    const body = method.body.safeParse(method.verb === "GET" ? {} : await readJson(request, this.#bodies));
    if (!body.success) {
      const [issue] = body.error.issues;
      throw new Refused(400, "API_INVALID", `${issue?.path.join(".") || "the body"}: ${issue?.message ?? "is wrong"}`);
    }
    asked.body = body.data;
    const claimed = (body.data as { nodeId?: unknown }).nodeId;
    if (claimed !== undefined && claimed !== caller.id) deny(caller, `speak for node ${JSON.stringify(claimed)}`);
    // A body may take its time, so the caller's rights are checked again (S-11).
    access.check(name, caller);
    if (method.verb !== "GET" && this.#lag.mayBeStale(began)) {
      const why = "this controller stood still; what was asked of it meanwhile is not carried out";
      throw new Refused(503, "CONTROLLER_READ_ONLY", why, "ask again");
    }
    if (method.form === "list") {
      const list = handlers[name as ListMethodName] as (call: Call<ListMethodName>) => object;
      await this.#lists.answer(caller.key, response, () => list({ caller, body: {}, id }));
      return 200;
    }
    if (name === "watch" || name === "backup" || name === "bundle") {
      await streams[name]({ caller, body: body.data as never, id }, response);
      return 200;
    }
    // The table ties each body's type to its handler's; that tie is lost when the name is only known now.
    const handler = handlers[name] as (call: Call<PlainMethodName>) => unknown;
    const reply = await handler({ caller, body: body.data as AcceptedBodyOf<PlainMethodName>, id });
    asked.reply = reply;
    const status = name === "ready" && (reply as AnswerOf<"ready">).ready === false ? 503 : 200;
    if (method.form === "text") send(response, status, reply as string, "text/plain; charset=utf-8");
    else send(response, status, JSON.stringify(reply));
    return status;
  }
}

/** The peer's address. A closed socket has lost its handle with the address; the plain socket below it remembers. */
function addressOf(socket: TLSSocket): string {
  return socket.remoteAddress ?? (socket as { _parent?: Socket })._parent?.remoteAddress ?? "";
}

function asRefusal(error: unknown, log: Log): Refused {
  if (error instanceof Refused) return error;
  const problem = error instanceof KcoreError ? error.problems[0] : undefined;
  if (problem?.code === "STORE_UNWRITABLE") return new Refused(507, problem.code, problem.message, problem.hint);
  if (problem?.code.startsWith("PKI_") === true || problem?.code === "UPDATE_UNSIGNED")
    return new Refused(400, problem.code, problem.message, problem.hint);
  log.error("a request failed", { ...describeError(error), stack: error instanceof Error ? error.stack : undefined });
  return new Refused(500, "INTERNAL", "the controller failed; its log says why");
}

function send(response: ServerResponse, status: number, text: string, type = "application/json"): void {
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
  response.end(text);
}
