import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import { describeError, type Log } from "#api/log.ts";
import { plainAddress } from "#api/listen.ts";
import { issuerHeader } from "#api/issuer-header.ts";
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
import { KcoreError } from "#errors/problem.ts";
import { Busy, Refused } from "../cluster/refused.ts";
import { deny, type AccessCheck } from "./access.ts";
import { limitLists, type AnswerLists, type ListAnswer } from "./answer-list.ts";
import { auditFields, type IdentifiedRequest } from "./audit-call.ts";
import { openBodyRoom, readJson } from "./body.ts";
import type { KnownCaller } from "./caller.ts";
import type { Connections } from "./connections.ts";
import type { EventLoopLag } from "./event-loop-lag.ts";
import { limitRate } from "./rate.ts";
import { queueYields } from "./yield-to-loop.ts";

export interface HandlerCall<Name extends MethodName> {
  readonly caller: KnownCaller;
  readonly body: AcceptedBodyOf<Name>;
  /** The path's `{id}`; empty if it has none. */
  readonly id: string;
}

type HandlerReply<Name extends PlainMethodName> = Name extends ListMethodName
  ? ListAnswer<AnswerOf<Name>>
  : AnswerOf<Name>;

export type Handlers = {
  readonly [Name in PlainMethodName]: (call: HandlerCall<Name>) => Promise<HandlerReply<Name>> | HandlerReply<Name>;
};

/** The handlers of methods with a streamed answer, which take over the response or the socket. */
export interface Streams {
  readonly watch: (call: HandlerCall<"watch">, response: ServerResponse) => Promise<void> | void;
  readonly backup: (call: HandlerCall<"backup">, response: ServerResponse) => Promise<void>;
  readonly bundle: (call: HandlerCall<"bundle">, response: ServerResponse) => Promise<void>;
  readonly replicate: (caller: KnownCaller, socket: Duplex, head: Buffer) => void;
}

export interface RequestOptions {
  readonly handlers: Handlers;
  readonly streams: Streams;
  readonly access: AccessCheck;
  readonly log: Log;
  /** The log of the audit's entries. */
  readonly audit: Log;
  readonly monotonic: () => number;
  /** Called with each answer, for the metrics. */
  readonly onAnswer?: (name: MethodName | "unknown", status: number, ms: number) => void;
}

/** How a server identifies and limits its callers. */
interface Callers {
  readonly connections: Connections;
  readonly lag: EventLoopLag;
  readonly identify: (socket: TLSSocket, issuer: string | undefined) => KnownCaller;
  /** The only methods that are answered; absent: all. */
  readonly only?: ReadonlySet<MethodName>;
}

/** The rate of requests with one node's key. */
const nodeRate = { perSecond: 20, burst: 100 };
/** The rates of a node's writes, and of its renewals, each of which leaves a record; by the node's id, since a renewal changes the key. */
const nodeChangeRate = { perSecond: 0.5, burst: 30 };
const renewalRate = { perSecond: 1 / 60, burst: 10 };

/** Answers all requests: identifies the caller, checks its rights, and sends the handler's reply. */
export class Requests {
  readonly #options: RequestOptions;
  readonly #callers: Callers;
  readonly #answerList: AnswerLists = limitLists(queueYields());
  readonly #bodies = openBodyRoom();
  readonly #isInRate: (key: string) => boolean;
  readonly #mayChange: (id: string) => boolean;
  readonly #mayRenew: (id: string) => boolean;

  constructor(options: RequestOptions, callers: Callers) {
    this.#options = options;
    this.#callers = callers;
    this.#isInRate = limitRate(nodeRate, options.monotonic);
    this.#mayChange = limitRate(nodeChangeRate, options.monotonic);
    this.#mayRenew = limitRate(renewalRate, options.monotonic);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { log, audit, monotonic, onAnswer } = this.#options;
    const began = monotonic();
    let identified: IdentifiedRequest | undefined;
    let status: number;
    let code: string | undefined;
    try {
      identified = this.#identify(request);
      if (isAudited(identified.name)) response.setHeader("x-request-id", identified.requestId);
      this.#admit(identified);
      status = await this.#handle(identified, request, response);
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
        // The rest of the body is not read, and a connection that was not admitted must not stay open.
        const isAdmitted = this.#callers.connections.has(request.socket as TLSSocket);
        if (!request.complete || !isAdmitted) response.setHeader("connection", "close");
        if (refused instanceof Busy) response.setHeader("retry-after", refused.retryAfterSecs);
        send(response, status, JSON.stringify(refused.toRefusal()));
      }
    } finally {
      this.#bodies.release(request);
    }
    // In this one place for all methods, so that a new method cannot be forgotten.
    if (identified && isAudited(identified.name, identified.reply)) {
      const fields = auditFields(identified, request, { status, ...omitUndefined({ code }) });
      // As warnings, whose rate is limited: refused callers must not fill the log.
      if ([401, 403].includes(status) || code === "API_BUSY") audit.warn("audit", fields);
      else audit.info("audit", fields);
    }
    onAnswer?.(identified?.name ?? "unknown", status, monotonic() - began);
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): void {
    socket.on("error", () => socket.destroy());
    try {
      const identified = this.#identify(request);
      this.#admit(identified);
      const { name, caller } = identified;
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

  /** The caller and the method of a request. @throws Refused, Busy */
  #identify(request: IncomingMessage): IdentifiedRequest {
    const socket = request.socket as TLSSocket;
    const issuer = request.headers[issuerHeader];
    const caller = this.#callers.identify(socket, typeof issuer === "string" ? issuer : undefined);
    this.#callers.connections.admit(socket, caller);
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

  /** Checks that the caller may call the method now. @throws Refused, Busy */
  #admit({ name, id, caller }: IdentifiedRequest): void {
    if (this.#callers.only?.has(name) === false)
      deny(caller, `ask ${methods[name].path} with a certificate that has expired`);
    this.#options.access.check(name, caller, id);
    // After the check: a caller that is not this node must not use up the node's rate.
    if (caller.identity.role !== "node" || !isAudited(name)) return;
    if (!this.#mayChange(caller.id) || (name === "renew" && !this.#mayRenew(caller.id)))
      throw new Busy(429, `node ${caller.id} changes too much, too often`, 2);
  }

  async #handle(identified: IdentifiedRequest, request: IncomingMessage, response: ServerResponse): Promise<number> {
    const { name, id, caller } = identified;
    const { handlers, streams, access, monotonic } = this.#options;
    const began = monotonic();
    if (name === "replicate") throw new Refused(426, "API_UNKNOWN", `ask with upgrade: ${replicationProtocol}`);
    const method: Method = methods[name];
    const body = method.body.safeParse(method.verb === "GET" ? {} : await readJson(request, this.#bodies));
    if (!body.success) {
      const [issue] = body.error.issues;
      throw new Refused(400, "API_INVALID", `${issue?.path.join(".") || "the body"}: ${issue?.message ?? "is wrong"}`);
    }
    identified.body = body.data;
    const claimed = (body.data as { nodeId?: unknown }).nodeId;
    if (claimed !== undefined && claimed !== caller.id) deny(caller, `speak for node ${JSON.stringify(claimed)}`);
    // The caller may have lost its rights while the body arrived, so they are checked again (S-11).
    access.check(name, caller, id);
    if (method.verb !== "GET" && this.#callers.lag.mayBeStale(began)) {
      const why = "this controller stood still; requests that came meanwhile are not carried out";
      throw new Refused(503, "CONTROLLER_READ_ONLY", why, "ask again");
    }
    if (method.form === "list") {
      const list = handlers[name as ListMethodName] as (call: HandlerCall<ListMethodName>) => object;
      await this.#answerList(caller.key, response, () => list({ caller, body: {}, id }));
      return 200;
    }
    if (name === "watch" || name === "backup" || name === "bundle") {
      await streams[name]({ caller, body: body.data as never, id }, response);
      return 200;
    }
    // The table ties each body's type to its handler's; TypeScript cannot follow that for a name known only at run time.
    const handler = handlers[name] as (call: HandlerCall<PlainMethodName>) => unknown;
    const reply = await handler({ caller, body: body.data as AcceptedBodyOf<PlainMethodName>, id });
    identified.reply = reply;
    const status = name === "ready" && (reply as AnswerOf<"ready">).ready === false ? 503 : 200;
    if (method.form === "text") send(response, status, reply as string, "text/plain; charset=utf-8");
    else send(response, status, JSON.stringify(reply));
    return status;
  }
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
