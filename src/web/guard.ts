import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** The decision about a request: accepted, redirected to get its cookie, or refused with a reason. */
export type GuardDecision =
  | { readonly kind: "admitted" }
  | { readonly kind: "cookie"; readonly cookie: string }
  | { readonly kind: "refused"; readonly status: number; readonly why: string };

/** Decides about a request before it is answered. */
export type Guard = (request: IncomingMessage) => GuardDecision;

/** A guard that admits requests with a token, and a browser that once sent it: other users of the machine reach loopback, too. */
export interface TokenGuard {
  readonly token: string;
  /** A random path: a browser sends a cookie to every port of a host, but only below the cookie's path. */
  readonly root: string;
  readonly guard: (port: number) => Guard;
}

/**
 * Makes a guard with a new token and a new path. A browser that sends the token gets a cookie in its place, so that its history holds no
 * token. No script, no page of another site and no server on another port gets the cookie. The guard refuses host names other than
 * loopback's, because another site's name may point here (DNS rebinding).
 */
export function tokenGuard(): TokenGuard {
  const [token, session, path] = [32, 32, 16].map((bytes) => randomBytes(bytes).toString("base64url")) as [
    string,
    string,
    string,
  ];
  const root = `/${path}`;
  return {
    token,
    root,
    guard: (port) => {
      const hosts = new Set(["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`));
      // Browsers ignore ports in cookies, so another kcore web needs a cookie of another name.
      const name = `kcore-web-${port}`;
      return ({ headers, url = "" }) => {
        if (!hosts.has(headers.host ?? "")) return refuse(421, "this server answers to 127.0.0.1 and localhost only");
        if (url.startsWith(`${root}/`) && isEqualText(cookieOf(headers.cookie, name), session))
          return { kind: "admitted" };
        const given = requestUrl(url)?.searchParams.get("token") ?? bearerOf(headers.authorization);
        if (given === undefined)
          return refuse(401, "the address that “kcore web” printed has the token that is asked for here");
        if (!isEqualText(given, token))
          return refuse(
            403,
            "this token is not the one that “kcore web” printed: it has a new one each time it starts",
          );
        if (headers.authorization !== undefined) return { kind: "admitted" };
        return { kind: "cookie", cookie: `${name}=${session}; Path=${root}/; HttpOnly; SameSite=Strict` };
      };
    },
  };
}

/** The path and query of a request's first line as a URL; undefined if they make none. */
export function requestUrl(url: string): URL | undefined {
  return URL.parse(`http://localhost${url}`) ?? undefined;
}

/** A refusal with an HTTP status and the reason that the browser shows. */
export function refuse(status: number, why: string): GuardDecision {
  return { kind: "refused", status, why };
}

function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer ([\w-]+)$/.exec(header ?? "")?.[1];
}

function cookieOf(header = "", name: string): string {
  const found = header.split(/; */).find((one) => one.startsWith(`${name}=`));
  return found?.slice(name.length + 1) ?? "";
}

/** Compares two texts in constant time, so that the time of an answer tells nothing about the secret. */
function isEqualText(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(a as Buffer, b as Buffer);
}
