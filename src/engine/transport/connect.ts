import type { Duplex } from "node:stream";
import { join } from "node:path";
import { DeadlinePassed, orAborted, withDeadline } from "./deadline.ts";
import { createNameResolver, type NameResolver } from "./dns.ts";
import { checkEndpoint } from "./check-endpoint.ts";
import { HostUnreachable, interrupted } from "./host-problems.ts";
import { parseHostKey, type HostKey, type TrustedKeys } from "./host-key.ts";
import { type Connect, type ConnectOptions, connectTimeouts, type Endpoint, type Host } from "./host.ts";
import type { Identities, Identity } from "./login-keys.ts";
import { createJumps } from "./jumps.ts";
import { lookUpKnownHost, readKnownHosts, type KnownHosts } from "./known-hosts.ts";
import type { PublicKey } from "./admit-key.ts";
import type { OpenSshFiles, TrustedHop } from "./openssh-config.ts";
import { openSocket } from "./socket.ts";

export interface TransportOptions {
  /** The folder that has `.ssh`. */
  readonly home: string;
  /** The ssh-agent's socket, `SSH_AUTH_SOCK`. */
  readonly agentSocket?: string;
  /** Trusted for hosts without a key in the roster; default: `~/.ssh/known_hosts` and `/etc/ssh/ssh_known_hosts`. */
  readonly knownHostsFiles?: readonly string[];
  readonly names?: NameResolver;
  /** Milliseconds without a sign of life after which a connection counts as lost; default: 15,000. */
  readonly silence?: number;
}

/** Opens the connections of one run, which share resolved names, decrypted keys and connections to jump hosts. */
export interface Transport {
  readonly connect: Connect;
  /**
   * The key that a host presents and proves to hold, without trust in it and without a login. Jump hosts are
   * verified and logged in to as in `connect`.
   * @throws KcoreError as `connect`, but for the host's own key.
   */
  scanHostKey(endpoint: Endpoint, options?: ConnectOptions): Promise<HostKey>;
  /**
   * Logs in once to a host with a trusted key, and adds a public key to the user's ~/.ssh/authorized_keys: the given key, or the public half of
   * the first key that `connect` would offer. A given password is used for this login alone (ADR 0014); jump hosts never see it.
   * @throws KcoreError KEY_NOT_ADMITTED, and as `connect`
   */
  admitKey(endpoint: Endpoint, admission: Admission, options?: ConnectOptions): Promise<Admitted>;
  /** The files by which the operator's own ssh reaches a host as this transport does; they will lie in the folder. @throws KcoreError ENDPOINT_INVALID */
  sshFiles(endpoint: Endpoint, folder: string): Promise<OpenSshFiles>;
  /** Ends the connections to jump hosts. */
  close(): Promise<void>;
}

export interface Admission {
  /** Absent: the login uses keys. */
  readonly password?: string;
  /** Absent: the first key that `connect` would offer. */
  readonly key?: PublicKey;
}

export interface Admitted {
  /** The key's name in messages. */
  readonly label: string;
  /** Whether the key was not in authorized_keys before. */
  readonly isNew: boolean;
}

/** A transport for one run. ssh2 is loaded when the first SSH connection is made, not before. */
export function createTransport(options: TransportOptions): Transport {
  const names = options.names ?? createNameResolver();
  const files = options.knownHostsFiles ?? [join(options.home, ".ssh", "known_hosts"), "/etc/ssh/ssh_known_hosts"];
  let known: Promise<readonly KnownHosts[]> | undefined;
  let identities: Promise<Identities> | undefined;

  const trustedKeys = async ({ address, port, hostKeys }: Endpoint): Promise<TrustedKeys> => {
    const found = lookUpKnownHost(await (known ??= Promise.all(files.map(readKnownHosts))), address, port);
    const pinned = hostKeys.map(parseHostKey).filter((key): key is HostKey => key !== undefined);
    // The roster's keys are reviewed in git, so this machine's known_hosts files add no key to them, but may revoke some.
    return hostKeys.length > 0 ? { ...found, keys: pinned, source: "the roster" } : found;
  };
  const findIdentities = async () => {
    identities ??= import("./login-keys.ts").then(({ createIdentities }) => createIdentities(options));
    return identities;
  };
  const dial = async (endpoint: Endpoint, signal: AbortSignal): Promise<Duplex> => {
    const hop = endpoint.jump.at(-1);
    if (hop) return jumps.dial({ ...hop, jump: endpoint.jump.slice(0, -1) }, endpoint, signal);
    const addresses = await orAborted(names.resolve(endpoint.address), signal);
    return openSocket({ name: endpoint.name, port: endpoint.port, addresses }, signal);
  };
  const within = async <T>(
    { name }: Endpoint,
    { signal: caller, timeout = connectTimeouts.ssh }: ConnectOptions,
    work: (signal: AbortSignal) => Promise<T>,
  ): Promise<T> => {
    try {
      return await withDeadline(timeout, caller, work);
    } catch (error) {
      if (error instanceof DeadlinePassed)
        throw new HostUnreachable("timeout", { message: `${name} was not reached: ${error.message}` }, error);
      if (caller?.aborted && error === caller.reason) throw interrupted(`connecting to ${name}`, error);
      throw error;
    }
  };

  const open = async (
    endpoint: Endpoint,
    logIn: { readonly identities: readonly Identity[]; readonly password?: string },
    given: ConnectOptions,
  ): Promise<Host> => {
    const [trusted, { openSsh }] = await Promise.all([trustedKeys(endpoint), import("./ssh2.ts")]);
    return within(endpoint, given, async (signal) => {
      const socket = await dial(endpoint, signal);
      return openSsh({ ...logIn, endpoint, socket, trusted, silence: options.silence ?? 15_000, signal });
    });
  };
  const hopsTo = async (endpoint: Endpoint): Promise<readonly [TrustedHop, ...TrustedHop[]]> => {
    const hops = [...endpoint.jump, endpoint].map(async (hop) => ({ endpoint: hop, trusted: await trustedKeys(hop) }));
    return (await Promise.all(hops)) as [TrustedHop, ...TrustedHop[]];
  };
  const openByProgram: Connect = async (endpoint, given = {}) => {
    const hops = await hopsTo(endpoint);
    const { openOpenSsh } = await import("./openssh-host.ts");
    const { home } = options;
    return within(endpoint, { timeout: connectTimeouts.openssh, ...given }, async (signal) =>
      openOpenSsh({ hops, home, signal }),
    );
  };
  const connect: Connect = async (endpoint, given = {}) => {
    checkEndpoint(endpoint);
    if (endpoint.transport === "local") return (await import("./local-host.ts")).openLocal(endpoint.name);
    if (endpoint.transport === "openssh") return openByProgram(endpoint, given);
    // The keys come before the timeout starts: an operator may have to type a passphrase.
    return open(endpoint, { identities: await (await findIdentities()).find(endpoint) }, given);
  };
  const jumps = createJumps(connect);

  return {
    connect,
    async scanHostKey(endpoint, given = {}) {
      checkEndpoint(endpoint);
      const { scanHostKey } = await import("./scan-host-key.ts");
      return within(endpoint, given, async (signal) => scanHostKey(endpoint, await dial(endpoint, signal), signal));
    },
    async admitKey(endpoint, { password, key: given }, options = {}) {
      checkEndpoint(endpoint);
      const { label, key } = given ? withLabel(given) : ownKey(await (await findIdentities()).find(endpoint));
      const [host, { admitKey }] = await Promise.all([
        password === undefined ? connect(endpoint, options) : open(endpoint, { identities: [], password }, options),
        import("./admit-key.ts"),
      ]);
      try {
        return { label, isNew: await admitKey(host, endpoint.user, key) };
      } finally {
        await host.close();
      }
    },
    async sshFiles(endpoint, folder) {
      checkEndpoint(endpoint);
      const { openSshFiles } = await import("./openssh-config.ts");
      return openSshFiles(await hopsTo(endpoint), { folder, home: options.home, isAttended: true });
    },
    close: () => jumps.close(),
  };
}

interface NamedKey {
  readonly label: string;
  readonly key: PublicKey;
}

function withLabel(key: PublicKey): NamedKey {
  return { label: key.comment ?? key.type, key };
}

/** The first key's public half; `find` throws rather than return an empty list. */
function ownKey(identities: readonly Identity[]): NamedKey {
  const [{ label, key }] = identities as [Identity];
  return { label, key: { type: key.type, key: key.getPublicSSH().toString("base64"), comment: "kcore" } };
}
