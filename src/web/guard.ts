import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

/** What becomes of a request: it comes in, it gets its cookie first, or it is refused in words. */
export type Verdict =
  | { readonly kind: "in" }
  | { readonly kind: "welcome"; readonly cookie: string }
  | { readonly kind: "out"; readonly status: number; readonly why: string };

/** Whether a request may be answered at all. */
export type Guard = (request: IncomingMessage) => Verdict;

/** Lets in whoever has the token, and the browser that came with it once. On loopback, where other users of the machine are. */
export interface TokenGuard {
  readonly token: string;
  /** A random path: a browser sends a cookie to every port of a host, but only below the cookie's path (S9). */
  readonly root: string;
  readonly guard: (port: number) => Guard;
}

/**
 * The token stands in the address that is printed. A browser that shows the token is given a cookie instead, so that the token stays out of
 * the browser's history. No script reads the cookie, no page of another site sends it, and no server on another port receives it.
 * A host name other than loopback's is refused: another site's name may be made to point here (DNS rebinding).
 */
export function tokenGuard(): TokenGuard {
  const [token, session, place] = [32, 32, 16].map((bytes) => randomBytes(bytes).toString("base64url")) as [
    string,
    string,
    string,
  ];
  const root = `/${place}`;
  return {
    token,
    root,
    guard: (port) => {
      const hosts = new Set(["127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`));
      // Cookies do not know ports: that of another kcore web is another one.
      const name = `kcore-web-${port}`;
      return ({ headers, url = "" }) => {
        if (!hosts.has(headers.host ?? "")) return out(421, "this server answers to 127.0.0.1 and localhost only");
        if (url.startsWith(`${root}/`) && isSame(cookieOf(headers.cookie, name), session)) return { kind: "in" };
        const given = addressOf(url)?.searchParams.get("token") ?? bearerOf(headers.authorization);
        if (given === undefined)
          return out(401, "the address that “kcore web” printed has the token that is asked for here");
        if (!isSame(given, token))
          return out(403, "this token is not the one that “kcore web” printed: it has a new one each time it starts");
        if (headers.authorization !== undefined) return { kind: "in" };
        return { kind: "welcome", cookie: `${name}=${session}; Path=${root}/; HttpOnly; SameSite=Strict` };
      };
    },
  };
}

/** What a request's first line asks for; undefined: no address, such as that of a proxy's request. */
export function addressOf(url: string): URL | undefined {
  return URL.parse(`http://localhost${url}`) ?? undefined;
}

export function out(status: number, why: string): Verdict {
  return { kind: "out", status, why };
}

function bearerOf(header: string | undefined): string | undefined {
  return /^Bearer ([\w-]+)$/.exec(header ?? "")?.[1];
}

function cookieOf(header = "", name: string): string {
  const found = header.split(/; */).find((one) => one.startsWith(`${name}=`));
  return found?.slice(name.length + 1) ?? "";
}

/** In a time that tells nothing of where they differ. */
function isSame(given: string, wanted: string): boolean {
  const [a, b] = [given, wanted].map((text) => createHash("sha256").update(text).digest());
  return timingSafeEqual(a as Buffer, b as Buffer);
}
