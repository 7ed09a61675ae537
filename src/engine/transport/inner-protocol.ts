import type { Client, ParsedKey } from "ssh2";

/**
 * The part of ssh2's own protocol object that `signed-at-once.ts` and `one-flight.ts` lean on. It is not ssh2's public
 * interface: the version is pinned exactly, and whoever uses it goes the public way when anything looks different.
 */
export interface InnerProtocol {
  authPK(user: string, key: ParsedKey, algorithm: string | undefined, sign?: SignCallback): void;
  exec(channel: number, command: string, wantReply: boolean): void;
  channelData(channel: number, bytes: Buffer): void;
  channelEOF(channel: number): void;
}

export type SignCallback = (data: Buffer, done: (signature: Buffer) => void) => void;

/** What is known of the other side. */
export interface InnerClient {
  readonly protocol: InnerProtocol;
  /** The server's software version: `OpenSSH_9.2p1 Debian-2`, `dropbear_2022.83` … */
  readonly server: string;
}

/** The inner protocol of a client, or undefined when it does not look as it did in the pinned version. */
export function innerOf(client: Client): InnerClient | undefined {
  const { _protocol: protocol, _remoteVer: server } = client as unknown as {
    _protocol?: Record<string, unknown>;
    _remoteVer?: unknown;
  };
  const names = ["authPK", "exec", "channelData", "channelEOF"];
  if (!protocol || !names.every((name) => typeof protocol[name] === "function")) return undefined;
  return { protocol: protocol as unknown as InnerProtocol, server: typeof server === "string" ? server : "" };
}
