import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import { createServer as createTlsServer } from "node:https";
import type { AddressInfo } from "node:net";
import { KcoreError } from "#errors/problem.ts";
import { html } from "#tui/html/html.ts";
import { requestUrl, type Guard } from "./guard.ts";
import { headers, type PageFrame } from "./page.ts";
import { Routes, type WebSources } from "./routes.ts";

/** The certificate of the server, and the CA of its clients. */
export interface ServerTls {
  /** PEM. */
  readonly cert: string;
  /** PEM. */
  readonly key: string;
  /** The CA of the client certificates, in PEM. */
  readonly ca: string;
}

export interface WebOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly tls?: ServerTls;
  /** Makes the guard, once the port is known. */
  readonly guard: (port: number) => Guard;
  readonly sources: WebSources;
  readonly frame: PageFrame;
}

export interface WebServer {
  readonly port: number;
  close(): Promise<void>;
}

/** Most connections: each page that is open in a browser holds one. */
const mostConnections = 256;

/**
 * Serves the records and the living runs of this project. The server changes nothing: it answers only GET and HEAD, reads
 * records and the runs' own sockets, and asks the cluster as `kcore top` does.
 * @throws KcoreError WEB_PORT_TAKEN, WEB_ADDRESS_UNUSABLE
 */
export async function serveWeb({ host, port, tls, guard, sources, frame }: WebOptions): Promise<WebServer> {
  const routes = new Routes(sources, frame);
  let admit: Guard | undefined;
  const onRequest: RequestListener = (request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (admit) receive(request, response, { admit, routes, root: frame.root });
    else response.destroy();
  };
  const limits = { headersTimeout: 10_000, requestTimeout: 30_000, maxHeaderSize: 16 * 1024 };
  const server: Server = tls
    ? createTlsServer(
        {
          ...limits,
          ...tls,
          minVersion: "TLSv1.3",
          requestCert: true,
          rejectUnauthorized: false,
          handshakeTimeout: 5000,
        },
        onRequest,
      )
    : createServer(limits, onRequest);
  server.maxConnections = mostConnections;
  server.listen(port, host);
  try {
    await once(server, "listening");
  } catch (cause) {
    throw listenProblem(cause as NodeJS.ErrnoException, host, port);
  }
  const { port: bound } = server.address() as AddressInfo;
  admit = guard(bound);
  return {
    port: bound,
    close: async () => {
      const closed = once(server, "close");
      server.close();
      server.closeAllConnections();
      routes.close();
      await closed;
    },
  };
}

function receive(
  request: IncomingMessage,
  response: ServerResponse,
  { admit, routes, root }: { readonly admit: Guard; readonly routes: Routes; readonly root: string },
): void {
  const { method = "", url = "/" } = request;
  if (method !== "GET" && method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return routes.refuse(response, 405, "nothing can be changed here");
  }
  const admission = admit(request);
  if (admission.kind === "refused") return routes.refuse(response, admission.status, admission.why);
  const target = requestUrl(url);
  if (!target) return routes.refuse(response, 400, "this is no address");
  if (root !== "" && target.pathname.startsWith(`${root}/`)) target.pathname = target.pathname.slice(root.length);
  if (admission.kind === "cookie") return giveCookie(response, target, { cookie: admission.cookie, root });
  const last = request.headers["last-event-id"];
  void routes.answer(target, response, typeof last === "string" ? last : undefined);
}

/**
 * Sets the cookie and sends the browser to the same page without the token. A redirection would not do: after a link on another
 * site's page, a browser follows it without a strict cookie (RFC 6265bis, 5.2).
 */
function giveCookie(
  response: ServerResponse,
  target: URL,
  { cookie, root }: { readonly cookie: string; readonly root: string },
): void {
  target.searchParams.delete("token");
  const to = `${root}${target.pathname}${target.search}`.replace(/^\/+/, "/");
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", "set-cookie": cookie });
  response.end(
    html`<!doctype html>
      <title>kcore</title>
      <meta http-equiv="refresh" content="0;url=${to}" /> `.source,
  );
}

function listenProblem(cause: NodeJS.ErrnoException, host: string, port: number): KcoreError {
  const problem =
    cause.code === "EADDRINUSE"
      ? ({
          code: "WEB_PORT_TAKEN",
          message: `port ${port} of ${host} is in use`,
          hint: "give another one: --port 0 takes any that is free",
        } as const)
      : ({
          code: "WEB_ADDRESS_UNUSABLE",
          message: `nothing can listen at port ${port} of ${host}: ${cause.message}`,
          hint: "give an address of this machine: --listen 0.0.0.0:8443",
        } as const);
  return new KcoreError(problem, { cause });
}
