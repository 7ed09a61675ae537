// “Members only” (docs/replication.md): a connection asks here whether its peer is let in.
import type { GreetingRefusal, MessageOf } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import type { PeerStream } from "./peer.ts";
import type { SoftState } from "./soft-state.ts";
import type { Writer } from "./writer.ts";

/** The services that all sessions of a replica share, and the choice between sessions. */
export interface SessionHost {
  /** Random for each process. */
  readonly processId: string;
  readonly outbox: Outbox;
  readonly soft: SoftState;
  readonly writer: Writer;
  /** The refusal of a greeting; undefined if it is accepted. */
  readonly refusalFor: (stream: PeerStream, hello: MessageOf<"hello">) => GreetingRefusal | undefined;
  /** Called when both sides have accepted. False: another connection to this peer was chosen, and this one is closed. */
  readonly opened: (stream: PeerStream) => boolean;
  readonly lost: (stream: PeerStream) => void;
  /** The open connection to another process with the same id. */
  readonly duplicateOf: (stream: PeerStream) => PeerStream | undefined;
  /** Refuses the later of two live processes with one id. */
  readonly refuseDuplicate: (stream: PeerStream, rival: PeerStream) => void;
  /** Called when the peer of a connection is silent. */
  readonly silent: (stream: PeerStream) => void;
  /** Called when a pull is complete and applied. */
  readonly synced: (stream: PeerStream) => void;
}
