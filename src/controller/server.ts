import type { IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { Server } from "node:https";
import { describeError } from "#api/log.ts";
import type { Log } from "#api/log.ts";
import type { Credentials } from "#api/client.ts";
import { findMethod, methods } from "#api/methods.ts";
import type { AcceptedBodyOf, AnswerOf, MethodName } from "#api/methods.ts";
import { KcoreError } from "#errors/problem.ts";
import { readJson } from "./body.ts";
import { callerOf } from "./caller.ts";
import type { KnownCaller } from "./caller.ts";
import { Refused } from "./refused.ts";

/** What is given to the function behind a method. */
export interface Call<Name extends MethodName> {
  readonly caller: KnownCaller;
  readonly body: AcceptedBodyOf<Name>;
  /** What stood for `{id}`; empty where the path has none. */
  readonly id: string;
}

export type Handlers = {
  readonly [Name in MethodName]?: (call: Call<Name>) => Promise<AnswerOf<Name>> | AnswerOf<Name>;
};

export interface ApiServerOptions {
  readonly credentials: Credentials;
  readonly cluster: string;
  readonly handlers: Handlers;
  readonly log: Log;
  readonly clock: () => number;
}

/** The HTTPS server of a controller: TLS 1.3, every client with a certificate of our CA, nothing but the methods table. */
export function createApiServer(options: ApiServerOptions): Server {
  const { credentials, log } = options;
  const server = createServer({
    ca: credentials.ca,
    cert: credentials.cert,
    key: credentials.key,
    minVersion: "TLSv1.3",
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: 5_000,
    headersTimeout: 10_000,
    requestTimeout: 30_000,
    // Longer than the agents' heartbeat, so that each keeps its connection.
    keepAliveTimeout: 75_000,
    connectionsCheckingInterval: 5_000,
    maxHeaderSize: 16 * 1024,
  });
  server.maxConnections = 4096;
  server.on("request", (request, response) => {
    answer(request, response, options).catch((error: unknown) => {
      log.error("a request could not be answered", describeError(error));
      response.destroy();
    });
  });
  server.on("tlsClientError", (error, socket) => {
    log.warn("a TLS connection was refused", { from: socket.remoteAddress ?? "", ...describeError(error) });
  });
  return server;
}

async function answer(request: IncomingMessage, response: ServerResponse, options: ApiServerOptions): Promise<void> {
  try {
    const { status, reply } = await handle(request, options);
    send(response, status, reply);
  } catch (error) {
    const refused = asRefusal(error, options.log);
    // What is left of the body is not worth reading.
    if (!request.complete) response.setHeader("connection", "close");
    send(response, refused.status, refused.toRefusal());
  }
}

async function handle(
  request: IncomingMessage,
  options: ApiServerOptions,
): Promise<{ readonly status: number; readonly reply: unknown }> {
  const caller = callerOf(request, options.cluster, options.clock());
  const path = (request.url ?? "").split("?")[0] ?? "";
  const found = findMethod(request.method ?? "", path);
  if (!("name" in found)) {
    throw found.wrongVerb
      ? new Refused(405, "API_UNKNOWN", `${path} is not asked by ${request.method}`)
      : new Refused(404, "API_UNKNOWN", `there is no ${path}`);
  }
  const { name, id = "" } = found;
  authorize(name, caller, id);
  const body = methods[name].body.safeParse(await readJson(request));
  if (!body.success) {
    const [issue] = body.error.issues;
    throw new Refused(400, "API_INVALID", `${issue?.path.join(".") || "the body"}: ${issue?.message ?? "is wrong"}`);
  }
  const claimed = (body.data as { nodeId?: unknown }).nodeId;
  if (claimed !== undefined && claimed !== caller.id) deny(caller, `speak for node ${JSON.stringify(claimed)}`);
  // The table ties each body's type to its handler's; that tie is lost when the name is only known now.
  const handler = options.handlers[name] as ((call: Call<MethodName>) => unknown) | undefined;
  if (!handler) throw new Refused(501, "API_UNKNOWN", `${path} is not answered by this version`);
  const reply = await handler({ caller, body: body.data as AcceptedBodyOf<MethodName>, id });
  const isNotReady = name === "ready" && (reply as AnswerOf<"ready">).ready === false;
  return { status: isNotReady ? 503 : 200, reply };
}

/** Default deny: only a role that the table names, and a node only about itself. */
export function authorize(name: MethodName, caller: Pick<KnownCaller, "identity" | "id">, id: string): void {
  const method: { roles: readonly string[]; ownNodeOnly?: true } = methods[name];
  if (!method.roles.includes(caller.identity.role)) deny(caller, `ask ${methods[name].verb} ${methods[name].path}`);
  const isAboutOther = method.ownNodeOnly === true && id !== "" && id !== caller.id;
  if (caller.identity.role === "node" && isAboutOther) deny(caller, `ask about node ${id}`);
}

function deny({ identity }: Pick<KnownCaller, "identity">, what: string): never {
  throw new Refused(403, "API_DENIED", `${identity.role} ${identity.id} may not ${what.slice(0, 200)}`);
}

function asRefusal(error: unknown, log: Log): Refused {
  if (error instanceof Refused) return error;
  const problem = error instanceof KcoreError ? error.problems[0] : undefined;
  if (problem?.code === "STORE_UNWRITABLE") return new Refused(507, problem.code, problem.message, problem.hint);
  log.error("a request failed", { ...describeError(error), stack: error instanceof Error ? error.stack : undefined });
  return new Refused(500, "INTERNAL", "the controller failed; its log says why");
}

function send(response: ServerResponse, status: number, reply: unknown): void {
  const text = JSON.stringify(reply);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.end(text);
}
