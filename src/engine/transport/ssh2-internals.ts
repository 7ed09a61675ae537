import { callbackify } from "node:util";
import type { Client, ParsedKey } from "ssh2";
import type { Identity } from "./login-keys.ts";

/**
 * The used part of ssh2's own protocol object. It is not ssh2's public interface: the version is pinned exactly, and the functions
 * that use it change nothing when anything looks different.
 */
interface InnerProtocol {
  authPK(user: string, key: ParsedKey, algorithm: string | undefined, sign?: SignCallback): void;
  exec(channel: number, command: string, wantReply: boolean): void;
  channelData(channel: number, bytes: Buffer): void;
  channelEOF(channel: number): void;
}

type SignCallback = (data: Buffer, done: (signature: Buffer) => void) => void;

/** A client's inner protocol, and its server's readiness for early messages. */
interface InnerClient {
  readonly protocol: InnerProtocol;
  /**
   * Bytes of input that may follow an exec request before the server has granted a window; undefined: the server is not known to take
   * requests ahead of its answers.
   */
  readonly ahead: number | undefined;
}

/**
 * `ahead` by the server's software version. OpenSSH grants a window of 2 MiB when the command starts, before it reads the input; dropbear
 * grants 24 KiB by default.
 */
const aheadOf: readonly (readonly [RegExp, number])[] = [
  [/^OpenSSH_(\d{2,}|[7-9])\./, 1024 * 1024],
  [/^dropbear_20[12]\d\./, 16 * 1024],
];

/** The inner protocol of a client, or undefined when it does not look as it did in the pinned version. */
export function innerOf(client: Client): InnerClient | undefined {
  const { _protocol: protocol, _remoteVer: server } = client as unknown as {
    _protocol?: Record<string, unknown>;
    _remoteVer?: unknown;
  };
  const names = ["authPK", "exec", "channelData", "channelEOF"];
  if (!protocol || !names.every((name) => typeof protocol[name] === "function")) return undefined;
  const ahead = aheadOf.find(([version]) => typeof server === "string" && version.test(server))?.[1];
  return { protocol: protocol as unknown as InnerProtocol, ahead };
}

const hashOf: Readonly<Record<string, "sha256" | "sha512">> = { "rsa-sha2-256": "sha256", "rsa-sha2-512": "sha512" };

/**
 * Makes the next publickey request of this client a signed one, which spares asking first whether the key is welcome
 * (RFC 4252, section 7): a round trip. Only for a host that is offered exactly one key, since each signature costs.
 * Must be called when authentication begins.
 */
export function signNextRequest(client: Client, identity: Identity, onFailure: (error: unknown) => void): void {
  const inner = innerOf(client);
  if (!inner) return;
  const { protocol } = inner;
  const ask = protocol.authPK.bind(protocol);
  protocol.authPK = (user, key, algorithm, sign) => {
    protocol.authPK = ask;
    // Without the server's list of algorithms ssh2 would fall back to SHA-1; every server of this decade takes SHA-2.
    const name =
      algorithm === "ssh-rsa" || (algorithm === undefined && key.type === "ssh-rsa") ? "rsa-sha2-512" : algorithm;
    const hash = name === undefined ? undefined : hashOf[name];
    if (sign || (name !== undefined && hash === undefined)) return ask(user, key, algorithm, sign);
    ask(user, key, name, (data, done) => {
      if (identity.agent) {
        callbackify(identity.agent.sign)(data, hash, (error, signature) =>
          error ? onFailure(error) : done(signature),
        );
        return;
      }
      const signature = identity.key.sign(data, hash) as Buffer | Error;
      if (signature instanceof Error) onFailure(signature);
      else done(signature);
    });
  };
}

interface InnerService {
  service?: (name: string) => void;
  _handlers?: { SERVICE_ACCEPT?: (protocol: unknown, name: string) => void };
}

/**
 * Sends the first authentication request together with the request for the authentication service, which saves a round trip: a server that
 * refuses the service disconnects anyhow (RFC 4253, section 10). Only with servers that are known to take both in order. The key's
 * signature must not depend on the server's later messages (RSA's does, RFC 8308).
 * Must be called when the key exchange has ended.
 */
export function logInAtOnce(client: Client): void {
  const inner = innerOf(client);
  if (inner?.ahead === undefined) return;
  const protocol = inner.protocol as unknown as InnerService;
  const [request, handlers] = [protocol.service?.bind(protocol), protocol._handlers];
  const accept = handlers?.SERVICE_ACCEPT;
  if (!request || !handlers || !accept) return;
  protocol.service = (name) => {
    protocol.service = request;
    request(name);
    // The server's own SERVICE_ACCEPT comes later, and must not be handled a second time.
    handlers.SERVICE_ACCEPT = () => undefined;
    accept(protocol, name);
  };
}

/**
 * OpenSSH's sshd names all its host keys after a login, and ssh2 has it prove each of them. These signatures cost both
 * sides more than the rest of the login, for keys that are not used, since only keys known before are trusted. This
 * suppresses ssh2's request for the proofs; must be called before the login ends.
 */
export function skipHostKeyProof(client: Client): void {
  const { _protocol: protocol, _callbacks: callbacks } = client as unknown as {
    _protocol?: Record<string, unknown>;
    _callbacks?: unknown;
  };
  if (typeof protocol?.["openssh_hostKeysProve"] !== "function" || !Array.isArray(callbacks)) return;
  // ssh2 has just queued a callback for the answer that will not come; answers are matched by their order.
  protocol["openssh_hostKeysProve"] = () => callbacks.pop() as unknown;
}
