import type { Duplex } from "node:stream";
import ssh2 from "ssh2";
import type { ClientErrorExtensions } from "ssh2";
import { KcoreError } from "#errors/problem.ts";
import { createAuthentication, type Authentication } from "./authentication.ts";
import { DeadlinePassed } from "./deadline.ts";
import { HostUnreachable, hostFailure, LoginRefused, messageOf } from "./host-problems.ts";
import { hostKeyOf, hostKeyProblem, type HostKey, type TrustedKeys } from "./host-key.ts";
import type { Endpoint, Host } from "./host.ts";
import type { Identity } from "./login-keys.ts";
import { authenticateByPassword } from "./password.ts";
import { safeAlgorithms } from "./ssh-algorithms.ts";
import { logInAtOnce, skipHostKeyProof } from "./ssh2-internals.ts";
import { createSshHost } from "./ssh-host.ts";
import { writeTogether } from "./write-together.ts";

/** The parts of an SSH connection; `connect.ts` finds them. */
export interface SshParts {
  readonly endpoint: Endpoint;
  /** A connection to the endpoint's port: TCP, or a channel of a jump host. Owned by `openSsh` from here on. */
  readonly socket: Duplex;
  readonly trusted: TrustedKeys;
  readonly identities: readonly Identity[];
  /** The login uses this password, and no key. */
  readonly password?: string;
  /** Milliseconds without a sign of life after which the connection counts as lost. Keepalives are sent three times as often. */
  readonly silence: number;
  /** Ends the handshake. */
  readonly signal: AbortSignal;
}

class ConnectionClosed extends Error {}

/** Characters kept of the banners that a server shows before the login (RFC 4252, section 5.4). */
const bannerLimit = 2_000;

type Phase = "key exchange" | "authentication";

/**
 * Exchanges keys, verifies the host's key, and logs in. Nothing that concerns the user is sent before the key was verified: ssh2 asks for
 * the verdict within the key exchange, and authentication follows the key exchange.
 * @throws KcoreError HOST_UNREACHABLE, HOST_KEY_UNKNOWN, HOST_KEY_CHANGED, HOST_KEY_REVOKED, AUTH_FAILED; the reason of an aborted signal
 */
export async function openSsh({
  endpoint,
  socket,
  trusted,
  identities,
  password,
  silence,
  signal,
}: SshParts): Promise<Host> {
  const client = new ssh2.Client();
  writeTogether(socket);
  let phase: Phase = "key exchange";
  let accepted: HostKey | undefined;
  const { promise: ready, resolve, reject } = Promise.withResolvers<void>();
  ready.catch(() => undefined);
  const authentication =
    password === undefined
      ? createAuthentication(client, endpoint.user, identities, reject)
      : authenticateByPassword(endpoint.user, password);
  const onAbort = () => reject(signal.reason as Error);
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();

  let banner = "";
  client.on("banner", (text: string) => (banner = `${banner}${text}`.slice(-bannerLimit)));
  client.on("ready", resolve);
  client.once("handshake", () => {
    phase = "authentication";
    skipHostKeyProof(client);
    const [only, second] = identities;
    if (only && !second && only.key.type !== "ssh-rsa") logInAtOnce(client);
  });
  client.on("error", (error: Error & ClientErrorExtensions) => {
    // After these errors ssh2 offers the next key by itself.
    if (error.level === "agent" || (error.level === "client-authentication" && !authentication.exhausted)) return;
    reject(error);
  });
  client.on("close", () => reject(new ConnectionClosed("it was closed without a word")));

  try {
    client.connect({
      sock: socket,
      username: endpoint.user,
      readyTimeout: 0,
      keepaliveInterval: Math.floor(silence / 3),
      // `liveness.ts` decides when a connection is dead.
      keepaliveCountMax: Number.MAX_SAFE_INTEGER,
      algorithms: safeAlgorithms(trusted.keys),
      authHandler: authentication.handler,
      hostVerifier: (blob: Buffer) => {
        const key = hostKeyOf(blob);
        // A later key exchange on the connection must present the same key.
        if (accepted) return accepted.key === key?.key;
        const problem = key ? hostKeyProblem(endpoint, key, trusted) : undefined;
        if (problem || !key) reject(problem ?? new Error("the host key is malformed"));
        else accepted = key;
        return accepted !== undefined;
      },
    });
    await ready;
    return createSshHost({
      client,
      socket,
      silence,
      name: endpoint.name,
      fingerprint: accepted?.fingerprint ?? "",
      ...(accepted && { hostKey: `${accepted.type} ${accepted.key}` }),
    });
  } catch (error) {
    client.destroy();
    socket.destroy();
    // The caller aborted, and reports its own reason.
    if (signal.aborted && error === signal.reason && !(error instanceof DeadlinePassed)) throw error;
    throw explain(error, { endpoint, phase, authentication, banner: banner.trim() });
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

interface Circumstances {
  readonly endpoint: Endpoint;
  readonly phase: Phase;
  readonly authentication: Authentication;
  /** The server's banners before the login. */
  readonly banner: string;
}

/** Disconnect codes for too many failed keys (RFC 4253, section 11.1): sshd sends PROTOCOL_ERROR (2), others NO_MORE_AUTH_METHODS_AVAILABLE (14). */
const authenticationDisconnects: ReadonlySet<unknown> = new Set([2, 14]);

function explain(error: unknown, { endpoint, phase, authentication, banner }: Circumstances): Error {
  const { name, user } = endpoint;
  const where = `${endpoint.address} port ${endpoint.port}`;
  if (error instanceof KcoreError) return error;
  if (error instanceof DeadlinePassed)
    return new HostUnreachable(
      "timeout",
      {
        message: `${name} did not finish the ${phase} at ${where}: ${error.message}`,
        hint:
          phase === "authentication"
            ? "slow name look-ups in sshd (UseDNS) or PAM may be the cause"
            : "is it sshd that listens there?",
      },
      error,
    );
  const { level, code } = error as { level?: string; code?: unknown };
  if (level === "client-authentication" || (phase === "authentication" && authenticationDisconnects.has(code)))
    return authenticationFailed({ endpoint, phase, authentication, banner }, error);
  const dropped = error instanceof ConnectionClosed || level === "protocol" || level === "client-socket";
  if (phase === "key exchange" && dropped)
    return new HostUnreachable(
      "busy",
      {
        message: `${name} closed the connection at ${where} before the key exchange: ${messageOf(error)}`,
        hint: "sshd drops connections above its MaxStartups, and for a while those it holds for abuse: try with less concurrency",
      },
      error,
    );
  if (phase === "key exchange")
    return new HostUnreachable(
      "handshake",
      {
        message: `${name} and kcore could not agree on how to talk at ${where}: ${messageOf(error)}`,
        hint: "kcore needs curve25519, ecdh-sha2 or a diffie-hellman group with SHA-2, and no SHA-1; “transport: openssh” in the roster logs in by the ssh program, with all that it can do",
      },
      error,
    );
  return new HostUnreachable(
    "lost",
    {
      message: `${name} closed the connection while ${user} logged in: ${messageOf(error)}`,
      ...(banner !== "" && { detail: banner }),
    },
    error,
  );
}

function authenticationFailed({ endpoint, authentication, banner }: Circumstances, cause: unknown): Error {
  const { name, user } = endpoint;
  const { offers, tried, unoffered, methods, partial } = authentication;
  const accepts = methods.length > 0 ? `it accepts: ${methods.join(", ")}` : undefined;
  const one = offers === "password" ? "password" : "key";
  const isOut = authenticationDisconnects.has((cause as { code?: unknown }).code);
  const said = [banner, isOut ? messageOf(cause) : ""].filter((text) => text !== "");
  const detail = [...said, ...tried, ...(accepts === undefined ? [] : [accepts])].join("\n");
  if (partial) {
    const message = `${name} wants more than a ${one} from ${user} (${methods.join(", ")}), which kcore cannot give`;
    const hint = `let ${user} log in by a key alone there (AuthenticationMethods publickey, in a Match block of its own)`;
    return hostFailure({ code: "AUTH_FAILED", message, hint, detail }, cause);
  }
  if (isOut && unoffered > 0) {
    const message = `${name} ended the login of ${user} after ${tried.length} of ${tried.length + unoffered} keys`;
    const hint = `name the right key in the roster; “identityFile: ~/.ssh/KEY.pub” picks it from the agent`;
    return new LoginRefused(name, { message, hint, detail }, cause);
  }
  const message = `${name} does not let ${user} log in with ${tried.length > 1 ? "any of these keys" : `this ${one}`}`;
  const hint =
    offers === "password"
      ? `is it right, and may ${user} log in by it (PasswordAuthentication, PermitRootLogin yes)?`
      : `is the public key in ~${user}/.ssh/authorized_keys there, and may ${user} log in (PermitRootLogin, AllowUsers, an expired account, a login shell that is not there)?`;
  return new LoginRefused(name, { message, hint, detail }, cause);
}
