import type { Client, ParsedKey } from "ssh2";

/**
 * The part of ssh2's own protocol object that `signed-at-once.ts`, `login-at-once.ts` and `one-flight.ts` lean on. It is not ssh2's public
 * interface: the version is pinned exactly, and its users go the public way when anything looks different.
 */
export interface InnerProtocol {
  authPK(user: string, key: ParsedKey, algorithm: string | undefined, sign?: SignCallback): void;
  exec(channel: number, command: string, wantReply: boolean): void;
  channelData(channel: number, bytes: Buffer): void;
  channelEOF(channel: number): void;
}

export type SignCallback = (data: Buffer, done: (signature: Buffer) => void) => void;

/** The known properties of the other side. */
export interface InnerClient {
  readonly protocol: InnerProtocol;
  /**
   * Bytes of input that a command's start may carry before the server has named its window; undefined: it is no server
   * of which we know that it takes requests ahead of its answers.
   */
  readonly ahead: number | undefined;
}

/**
 * By the server's software version. OpenSSH grants 2 MiB as soon as the command runs, which is before it looks at them;
 * dropbear 24 KiB unless told otherwise.
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
