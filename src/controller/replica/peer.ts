// “A deletion stays deleted” (docs/replication.md): each peer's acknowledgements; a deletion is kept until all peers have it.
import { raise, type WireVector } from "#crdt/version-vector.ts";
import type { PeerMessage, RefusalCode } from "./messages.ts";
import { PhiDetector } from "./phi.ts";
import { BackOff, RttEstimator } from "./rtt.ts";

/** A connection to a peer, as the parts of a replica use it. */
export interface Stream {
  readonly peer: Peer;
  /** Whether this side dialled. */
  readonly isDialled: boolean;
  /** Both sides have accepted each other, and it stands. */
  readonly isOpen: boolean;
  /** The peer's process, and the beginning of this connection (monotonic). */
  readonly boot: string;
  readonly openedAt: number;
  /** Where the peer's process is, in words. */
  readonly where: string;
  /** The text by which the next ping tells the peer that another process runs as it. */
  copies: string | undefined;
  /** Whether the process at its other end is alive. */
  readonly probe: (done: (isAlive: boolean) => void) => void;
  /** How far own transactions were sent. */
  pushed: { readonly origin: string; readonly seq: number };
  readonly send: (message: PeerMessage) => void;
  readonly sendHave: () => void;
  /** New records became durable here. */
  readonly hasNews: () => void;
  readonly pull: () => void;
  readonly refuse: (code: RefusalCode, message: string) => void;
  /** The peer sent a message that no kcore sends: raises an alarm, and ends the connection. */
  readonly malformed: (what: string) => void;
  readonly close: (reason: string) => void;
}

/** This controller's knowledge of another one; outlives its connections. */
export class Peer {
  readonly id: string;
  readonly rtt = new RttEstimator(1000);
  readonly phi = new PhiDetector();
  readonly backOff: BackOff;
  /** The version vector that the peer last acknowledged as durable; undefined until it spoke. */
  acked: Map<string, number> | undefined;
  /** The transactions that the peer was journaling at that time. */
  soon: ReadonlyMap<string, number> = new Map();
  isReady: boolean | undefined;
  /** The one connection that counts. */
  stream: Stream | undefined;
  isDialling = false;
  /** Origins whose stamps, held by the peer, wait for our clock. */
  readonly deferred = new Set<string>();
  refusal: { readonly code: string; readonly message: string } | undefined;

  constructor(id: string, backOffCap: number) {
    this.id = id;
    this.backOff = new BackOff(backOffCap);
  }

  /** A late acknowledgement counts, too: it was true, and stays true. */
  confirmed(vector: WireVector, soon: WireVector = []): void {
    this.acked = new Map(vector);
    this.soon = new Map(soon);
  }

  /** The peer wrote transactions up to `upto` under this origin. */
  pushed(origin: string, upto: number): void {
    this.acked ??= new Map();
    raise(this.acked, [[origin, upto]]);
  }
}
