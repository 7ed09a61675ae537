/**
 * A server in a process of its own, for tests that block the event loop: `node download-server.ts PORT LOG`.
 * `/file` answers with `body`, by ranges; `/cut` ends its first answer halfway; `/plain` ignores ranges; `/large` answers with `large`.
 * `/private` needs the header `X-Token` with `token`; `/moved` redirects to `/file` with that header, `/away` always, `/round` to itself.
 * `/endless` never ends, `/half` stops in the middle, `/slow` pauses there for three seconds.
 * LOG gets a line for each request: verb, path, range, whether it has a token.
 */
import { appendFileSync } from "node:fs";
import { createServer, type ServerResponse } from "node:http";
import { fileURLToPath } from "node:url";

/** The answer to `/file`. */
export const body = Buffer.from(Array.from({ length: 20_000 }, (_, index) => `line ${index}\n`).join(""));
export const large = Buffer.alloc(3_000_000, body);
export const token = `it's "secret" \\n`;

function main(port: number, log: string): void {
  let cuts = 0;
  createServer((request, response) => {
    const { url = "", headers } = request;
    const given = headers["x-token"];
    appendFileSync(log, `${request.method} ${url} ${headers.range ?? "-"} ${given === undefined ? "-" : "token"}\n`);
    if ((url === "/private" || url === "/moved") && given !== token) return response.writeHead(403).end("no\n");
    if (url === "/moved" || url === "/away") return response.writeHead(302, { location: "/file" }).end();
    if (url === "/round") return response.writeHead(302, { location: url }).end();
    if (url === "/half")
      return response.writeHead(200, { "content-length": body.length }).write(body.subarray(0, body.length / 2));
    if (url === "/large") return response.end(large);
    if (url === "/slow") {
      response.writeHead(200, { "content-length": body.length }).write(body.subarray(0, body.length / 2));
      return setTimeout(() => response.end(body.subarray(body.length / 2)), 3000);
    }
    if (url === "/endless") return writeEndlessly(response);
    if (!["/file", "/cut", "/plain", "/private"].includes(url)) return response.writeHead(404).end("none\n");
    const from = url === "/plain" ? 0 : Number(/^bytes=(\d+)-/.exec(headers.range ?? "")?.[1] ?? 0);
    if (from >= body.length) return response.writeHead(416).end();
    const part = body.subarray(from);
    const range = from > 0 ? { "content-range": `bytes ${from}-${body.length - 1}/${body.length}` } : {};
    response.writeHead(from > 0 ? 206 : 200, { "content-length": part.length, ...range });
    if (url === "/cut" && cuts++ === 0)
      return response.write(part.subarray(0, body.length / 2), () => setTimeout(() => response.destroy(), 50));
    return response.end(request.method === "HEAD" ? undefined : part);
  }).listen(port, "127.0.0.1");
}

/** Writes as fast as the client reads, until it disconnects. */
function writeEndlessly(response: ServerResponse): void {
  if (!response.destroyed) response.write(body, () => writeEndlessly(response));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main(Number(process.argv[2]), process.argv[3] ?? "/dev/null");
