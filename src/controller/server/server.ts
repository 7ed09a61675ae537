import { createServer, type Server, type ServerOptions } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { describeError, type Log, type LogFields } from "#api/log.ts";
import type { Credentials } from "#api/client.ts";
import { lateRenewalProtocol } from "#api/late-renewal.ts";
import type { BastionCas } from "#pki/chain.ts";
import { Refused } from "../cluster/refused.ts";
import { auditLog } from "./audit-call.ts";
import { callerOf, holderOn, type KnownCaller } from "./caller.ts";
import { limitsFor, maxConnectionsFor, watchConnections, type Connections } from "./connections.ts";
import { limitHandshakes } from "./handshake-limits.ts";
import { endLateConnections, expiredCallerOf, lateRenewalMethods, routeLateRenewals } from "./expired-caller.ts";
import { limitWarnings } from "./log-limit.ts";
import { watchLag } from "./event-loop-lag.ts";
import { Requests, type RequestOptions } from "./requests.ts";

interface ApiServerOptions extends Omit<RequestOptions, "audit"> {
  readonly credentials: Credentials;
  readonly cluster: string;
  /** The CAs that may have issued an operator's or a controller's certificate. */
  readonly bastion: BastionCas;
  /** Called with the audit's entry of each audited call. */
  readonly trail: (fields: LogFields) => void;
  readonly clock: () => number;
  /** The number of files that this process may have open; absent: enough. */
  readonly openFiles?: number;
}

export interface ApiServer {
  readonly server: Server;
  readonly connections: Connections;
  /** Uses a new certificate for new connections. */
  readonly use: (context: Pick<Credentials, "ca" | "cert" | "key">) => void;
  /** Stops listening, and waits up to 5 s for the requests under way. */
  readonly close: () => Promise<void>;
}

/** The HTTPS server of a controller: TLS 1.3, client certificates of the cluster's CA, only methods of the table. */
export function createApiServer(given: ApiServerOptions): ApiServer {
  const { trail } = given;
  const log = limitWarnings(given.log, given.monotonic);
  const audit = limitWarnings(auditLog(given.log, trail), given.monotonic);
  const options = { ...given, log, audit };
  const { credentials } = options;
  const maxConnections = maxConnectionsFor(options.openFiles);
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
  // Never listens: `server` hands it the connections of nodes whose certificate has expired, for two methods (F-25).
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
  const { cluster, bastion, clock } = options;
  const usual = new Requests(options, {
    connections,
    lag,
    identify: (socket, issuer) => callerOf(socket, { cluster, bastion, issuer, now: clock() }),
  });
  // Counted before the first request, so that idle connections cannot take all the room.
  server.on("secureConnection", (socket) => {
    const who = acceptableHolder(socket, cluster);
    if (!connections.arrived(socket, who?.key ?? "", who?.identity.role ?? "node")) socket.destroy();
  });
  const rootPem = credentials.ca;
  const renewals = new Requests(options, {
    connections,
    lag,
    identify: (socket) => expiredCallerOf(socket, { cluster, rootPem, now: clock() }),
    only: lateRenewalMethods,
  });
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

/** The holder of a connection's certificate; undefined for an unacceptable certificate, of which the first request gets the reason. */
function acceptableHolder(socket: TLSSocket, cluster: string): KnownCaller | undefined {
  try {
    return holderOn(socket, cluster);
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
    // If OpenSSL refused the client's certificate, Node's error does not say why; the reason is on the socket.
    const why = typeof authorizationError === "string" ? { reason: authorizationError } : describeError(error);
    log.warn("a TLS connection was refused", { from: addressOf(socket), ...why });
    socket.destroy();
  });
  // Without free files accepting a connection fails; all others are served on.
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

/** The peer's address. A closed TLS socket has lost it; the TCP socket below it still has it. */
function addressOf(socket: TLSSocket): string {
  return socket.remoteAddress ?? (socket as { _parent?: Socket })._parent?.remoteAddress ?? "";
}
