import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { createServer as createSocketServer, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { LoadedCredentials } from "#api/credentials.ts";
import { formatEndpoint, type ApiEndpoint } from "#api/endpoint.ts";
import { listenAt, plainAddress } from "#api/listen.ts";
import { describeError, type Log } from "#api/log.ts";
import { KcoreError } from "#errors/problem.ts";
import { identityOf } from "#pki/identity.ts";
import { keyFingerprint, publicDer } from "#pki/keys.ts";

/** The pages about the node; each is made when a client asks for it. */
export interface StatusPages {
  readonly "/status": () => Promise<unknown>;
  readonly "/disks": () => Promise<unknown>;
  readonly "/nics": () => Promise<unknown>;
  /** Prometheus' text format. */
  readonly "/metrics": () => Promise<string>;
  /** The status is 503 for `ok: false`. */
  readonly "/healthz": () => Promise<{ readonly ok: boolean }>;
}

// Not imported, to save memory: an import of node:http reads all its exports, and so loads Node's fetch and WebSocket.
const { createServer } = process.getBuiltinModule("node:http");

const limits = { headersTimeout: 5_000, requestTimeout: 10_000, keepAliveTimeout: 5_000, maxHeaderSize: 8 * 1024 };
const connectionLimit = 64;

export type StatusServer = Awaited<ReturnType<typeof serveStatus>>;

/**
 * Serves a node's status, read-only, on one port: plain HTTP for loopback addresses, and TLS 1.3 with a certificate of
 * an operator or a controller of our cluster for all others.
 * @throws KcoreError LISTEN_FAILED
 */
export async function serveStatus({
  listen,
  credentials,
  pages,
  isRevoked,
  clock,
  log,
}: {
  readonly listen: ApiEndpoint;
  readonly credentials: LoadedCredentials;
  readonly pages: StatusPages;
  /** Whether the key with this fingerprint (SHA-256 of the SPKI) is revoked; called for each request. */
  readonly isRevoked: (spki: string) => boolean;
  readonly clock: () => number;
  readonly log: Log;
}) {
  const plain = createServer(limits);
  const secure = createTlsServer({
    ...limits,
    ...tlsOf(credentials),
    requestCert: true,
    rejectUnauthorized: true,
    handshakeTimeout: 5_000,
  });
  const { cluster } = credentials.identity;
  plain.on("request", (request, response) => answer(request, response, { pages, log }));
  secure.on("request", (request, response) => {
    const refusal = refusalOf(request.socket as TLSSocket, { cluster, now: clock(), isRevoked });
    if (refusal === undefined) return answer(request, response, { pages, log });
    log.warn("a request for this node's status was refused", {
      from: plainAddress(request.socket.remoteAddress),
      reason: refusal,
    });
    send(response, 403, { code: "API_DENIED", message: refusal });
  });
  const open = new Set<TLSSocket>();
  secure.on("secureConnection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  // Failed handshakes are not logged, since any client could fill the log with them.
  secure.on("tlsClientError", (_error, socket) => socket.destroy());
  const listener = createSocketServer((socket: Socket) => {
    const server: Server = isLoopback(socket.remoteAddress) ? plain : secure;
    server.emit("connection", socket);
  });
  listener.maxConnections = connectionLimit;
  try {
    await listenAt(listener, listen);
  } catch (error) {
    const message = `the agent cannot listen on ${formatEndpoint(listen)}: ${(error as Error).message}`;
    throw new KcoreError(
      { code: "LISTEN_FAILED", message, hint: `the process that has it: ss -ltnp 'sport = :${listen.port}'` },
      { cause: error },
    );
  }
  return {
    port: (listener.address() as { port: number }).port,
    /** Shows the new certificate on new connections. */
    use: (fresh: LoadedCredentials): void => secure.setSecureContext(tlsOf(fresh)),
    /** Ends the connections of revoked keys. */
    cutRevoked(): void {
      for (const socket of open) if (isRevoked(clientKey(socket))) socket.destroy();
    },
    async close(): Promise<void> {
      const closed = new Promise<void>((resolve) => listener.close(() => resolve()));
      for (const server of [plain, secure]) server.closeAllConnections();
      await closed;
    },
  };
}

function tlsOf({ ca, cert, key }: LoadedCredentials) {
  return { ca, cert, key, minVersion: "TLSv1.3" } as const;
}

/** The fingerprint of the client's public key; empty without a certificate. */
function clientKey(socket: TLSSocket): string {
  const certificate = socket.getPeerX509Certificate();
  return certificate ? keyFingerprint(publicDer(certificate.publicKey)) : "";
}

/** The reason to refuse a request, by the client's certificate and the revoked keys (S-10, S-11); undefined: it is answered. */
function refusalOf(
  socket: TLSSocket,
  {
    cluster,
    now,
    isRevoked,
  }: { readonly cluster: string; readonly now: number; readonly isRevoked: (spki: string) => boolean },
): string | undefined {
  const certificate = socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (!certificate) return "no client certificate of this cluster's CA";
  try {
    const identity = identityOf(certificate, "client");
    if (identity.cluster !== cluster) return `the certificate is for the cluster “${identity.cluster}”`;
    if (identity.role === "node") return "nodes may not ask about other nodes";
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  if (certificate.validToDate.getTime() <= now) return "the client certificate has expired";
  return isRevoked(clientKey(socket)) ? "the key of the client certificate was revoked" : undefined;
}

function answer(
  request: IncomingMessage,
  response: ServerResponse,
  { pages, log }: { readonly pages: StatusPages; readonly log: Log },
): void {
  const path = (request.url ?? "").split("?")[0] ?? "";
  if (!Object.hasOwn(pages, path))
    return send(response, 404, { code: "API_UNKNOWN", message: "there is no such page" });
  if (request.method !== "GET") return send(response, 405, { code: "API_UNKNOWN", message: "only GET is known here" });
  pages[path as keyof StatusPages]().then(
    (page) => send(response, path === "/healthz" && (page as { ok: boolean }).ok === false ? 503 : 200, page),
    (error: unknown) => {
      log.error("the status could not be told", describeError(error));
      send(response, 500, { code: "INTERNAL", message: "the agent's log says why" });
    },
  );
}

/** Sends a page as JSON, or a text as Prometheus reads it. */
function send(response: ServerResponse, status: number, page: unknown): void {
  const isText = typeof page === "string";
  const text = isText ? page : `${JSON.stringify(page)}\n`;
  const type = isText ? "text/plain; version=0.0.4; charset=utf-8" : "application/json";
  response.writeHead(status, { "content-type": type, "content-length": Buffer.byteLength(text) });
  response.end(text);
}

function isLoopback(address: string | undefined): boolean {
  return address !== undefined && /^(?:127\.|::1$|::ffff:127\.)/.test(address);
}
