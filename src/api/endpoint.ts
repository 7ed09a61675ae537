import { isIP } from "node:net";
import { KcoreError } from "#errors/problem.ts";

export interface ApiEndpoint {
  readonly host: string;
  readonly port: number;
}

export const controllerPort = 9090;

/** Reads `host`, `host:port`, `[v6]:port` or a bare IPv6 address; a missing port is `defaultPort`. @throws KcoreError USAGE */
export function parseEndpoint(text: string, defaultPort = controllerPort): ApiEndpoint {
  const bare = isIP(text) === 6 ? { host: text, port: undefined } : undefined;
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:[\]]+))(?::(\d{1,5}))?$/.exec(text) ?? [];
  const host = bare?.host ?? bracketed ?? plain;
  const port = digits === undefined ? defaultPort : Number(digits);
  const isValidHost =
    host !== undefined && (isIP(host) !== 0 || /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/.test(host));
  if (isValidHost && (bracketed === undefined || isIP(host) === 6) && port >= 1 && port <= 65_535)
    return { host, port };
  throw new KcoreError({
    code: "USAGE",
    message: `“${text}” is not an endpoint`,
    hint: "write HOST, HOST:PORT or [IPV6]:PORT",
  });
}

/** Reads the endpoint at which a daemon listens; port 0 means any free port. @throws KcoreError USAGE */
export function parseListen(text: string, defaultPort?: number): ApiEndpoint {
  const isAnyPort = text.endsWith(":0");
  const { host, port } = parseEndpoint(isAnyPort ? text.slice(0, -2) : text, defaultPort);
  return { host, port: isAnyPort ? 0 : port };
}

/** `host:port`, with brackets around IPv6. */
export function formatEndpoint({ host, port }: ApiEndpoint): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
