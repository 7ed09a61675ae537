// “Members only” (docs/replication.md): a connection asks here whether its peer is let in.
import type { PeerMessage, Refusal } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import type { Stream } from "./peer.ts";
import type { SoftState } from "./soft-state.ts";
import type { Writer } from "./writer.ts";

/** The part of a replica that its sessions share, and that chooses between them. */
export interface SessionHost {
  /** Random per process. */
  readonly boot: string;
  readonly outbox: Outbox;
  readonly soft: SoftState;
  readonly writer: Writer;
  /** Whether a greeting is refused, and why. */
  readonly refusalFor: (stream: Stream, hello: Extract<PeerMessage, { t: "hello" }>) => Refusal | undefined;
  /** Both sides have accepted. False: another connection to this peer counts, and this one ends. */
  readonly opened: (stream: Stream) => boolean;
  readonly lost: (stream: Stream) => void;
  /** The open connection of another process with the same id. */
  readonly duplicateOf: (stream: Stream) => Stream | undefined;
  /** Both processes are alive. */
  readonly refuseDuplicate: (stream: Stream, rival: Stream) => void;
  /** The peer of a connection is silent. */
  readonly silent: (stream: Stream) => void;
  /** A pull came to its end. */
  readonly synced: (stream: Stream) => void;
}
