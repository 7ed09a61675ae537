import type { Duplex } from "node:stream";

/** Why a command's channel ended. Both undefined: the connection was lost or kcore closed the channel, and the outcome is unknown. */
export interface Exit {
  readonly code?: number;
  readonly signal?: string;
}

/** One command running on a host, its three streams, and its end. */
export interface Channel {
  /** Sends bytes to stdin; resolves when more may be sent (backpressure), rejects when the channel is gone. */
  write(bytes: Uint8Array | string): Promise<void>;
  /**
   * Counts the bytes of stdin that the other end has taken, from an arbitrary start. Over SSH it follows the channel's window: bytes in
   * transit do not count, and up to some 100 KiB of the last write may never be counted.
   */
  bytesTaken(): number;
  /** Closes stdin. */
  end(): void;
  /** The command's output, as it comes; ends with the channel. Must be consumed. */
  readonly stdout: AsyncIterable<Uint8Array>;
  /** The last 64 KiB of stderr are kept for messages; consuming is not needed. */
  stderrTail(): string;
  /** Resolves when the channel is closed and stdout was read to its end; never rejects. */
  readonly exit: Promise<Exit>;
  /** Closes the channel at once from the bastion's side. */
  close(): void;
}

export interface ExecOptions {
  /** Aborted while the channel opens: `exec` rejects; later: the channel is closed as by `close()`. */
  readonly signal?: AbortSignal;
  /** The first bytes of stdin; given here, they may travel with the request itself and save round trips. */
  readonly input?: Uint8Array | string;
  /** Gets the command's stderr as it arrives; messages keep the tail of it as well. */
  readonly onStderr?: (bytes: Buffer) => void;
}

/** An open, authenticated connection to one host whose key was verified. */
export interface Host {
  readonly name: string;
  /** `SHA256:…` of the host key in use; empty for the local transport. */
  readonly fingerprint: string;
  /** The host key in use, `TYPE BASE64`; absent for the local transport. */
  readonly hostKey?: string;
  /**
   * Starts a command by the user's login shell. The command must be a constant of kcore's: values travel on stdin.
   * After a rejection with HOST_UNREACHABLE perhaps the command has run, and only the answer was lost.
   * @throws KcoreError CHANNEL_REFUSED when the server allows no more channels (MaxSessions).
   */
  exec(command: string, options?: ExecOptions): Promise<Channel>;
  /** A TCP connection made from the host to `address:port` (direct-tcpip). */
  forward(address: string, port: number, options?: { readonly signal?: AbortSignal }): Promise<Duplex>;
  /** Resolves with the reason once the connection is gone, by either end; never rejects. */
  readonly closed: Promise<string>;
  /** Ends the connection and resolves when its sockets are gone. Safe to call twice. */
  close(): Promise<void>;
}

/** Everything that is needed to reach one host; made from the roster by `engine/session`. */
export interface Endpoint {
  readonly name: string;
  /** `openssh`: by this machine's own ssh program. */
  readonly transport: "ssh" | "openssh" | "local";
  readonly address: string;
  readonly port: number;
  readonly user: string;
  readonly identityFile?: string;
  /** Called for an encrypted key file, up to three times; `again`: the last passphrase was wrong. */
  readonly passphrase?: (again?: boolean) => Promise<string | undefined>;
  /** `TYPE BASE64` each; empty: only ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts are trusted. */
  readonly hostKeys: readonly string[];
  /** Hosts to go through, first hop first. */
  readonly jump: readonly Endpoint[];
}

/**
 * Milliseconds for one attempt to connect (F-14). The ssh program may wait until an operator touches a security key, or for a ticket of
 * Kerberos.
 */
export const connectTimeouts = { ssh: 10_000, openssh: 60_000, local: 10_000 } as const;

export interface ConnectOptions {
  readonly signal?: AbortSignal;
  /** Milliseconds for TCP, key exchange and authentication together; default: {@link connectTimeouts}. */
  readonly timeout?: number;
}

/**
 * Opens a connection.
 * @throws KcoreError HOST_UNREACHABLE, HOST_KEY_UNKNOWN, HOST_KEY_CHANGED, AUTH_FAILED, DNS_FAILED, KEY_UNREADABLE …
 */
export type Connect = (endpoint: Endpoint, options?: ConnectOptions) => Promise<Host>;
