// “A deletion stays deleted” (docs/replication.md): each peer's acknowledgements; a deletion is kept until all peers have it.
import { createBackoff, type Backoff } from "#base/backoff.ts";
import { raise, type WireVector } from "#crdt/version-vector.ts";
import type { PeerMessage, RefusalCode } from "./messages.ts";
import { PhiDetector } from "./phi.ts";
import { RttEstimator } from "./rtt.ts";

/** A connection to a peer, for the parts of a replica. */
export interface Stream {
  readonly peer: Peer;
  /** Whether this side dialled. */
  readonly isDialled: boolean;
  /** Whether both sides have accepted each other and the connection is not closed. */
  readonly isOpen: boolean;
  /** The random id of the peer's process, and the (monotonic) time at which the connection opened. */
  readonly boot: string;
  readonly openedAt: number;
  /** The address of the peer's process, for messages. */
  readonly where: string;
  /** The text that the next ping carries if another process runs under the peer's identity. */
  copies: string | undefined;
  /** Pings, and calls back with whether the peer's process answered. */
  readonly probe: (done: (isAlive: boolean) => void) => void;
  /** The last own transaction that was sent. */
  pushed: { readonly origin: string; readonly seq: number };
  readonly send: (message: PeerMessage) => void;
  readonly sendHave: () => void;
  /** Called when new records became durable here. */
  readonly hasNews: () => void;
  readonly pull: () => void;
  readonly refuse: (code: RefusalCode, message: string) => void;
  /** Called for a message that no kcore sends: raises an alarm, and closes the connection. */
  readonly malformed: (what: string) => void;
  readonly close: (reason: string) => void;
}

/** This controller's knowledge of another controller, kept across connections. */
export class Peer {
  readonly id: string;
  readonly rtt = new RttEstimator(1000);
  readonly phi = new PhiDetector();
  readonly backOff: Backoff;
  /** The version vector that the peer last acknowledged as durable; undefined until it spoke. */
  acked: Map<string, number> | undefined;
  /** The transactions that the peer was journaling at that time. */
  soon: ReadonlyMap<string, number> = new Map();
  isReady: boolean | undefined;
  /** The chosen connection, of possibly several. */
  stream: Stream | undefined;
  isDialling = false;
  /** Origins whose writes at the peer wait, since their stamps lie ahead of this controller's clock. */
  readonly deferred = new Set<string>();
  refusal: { readonly code: string; readonly message: string } | undefined;

  constructor(id: string, { cap, random }: { readonly cap: number; readonly random: () => number }) {
    this.id = id;
    this.backOff = createBackoff({ base: () => this.rtt.rto, cap, random, least: 0 });
  }

  /** Stores an acknowledgement. A delayed one counts, too: durable transactions stay durable. */
  confirmed(vector: WireVector, soon: WireVector = []): void {
    this.acked = new Map(vector);
    this.soon = new Map(soon);
  }

  /** Called for a push: the peer has its own transactions of `origin` up to `upto`. */
  pushed(origin: string, upto: number): void {
    this.acked ??= new Map();
    raise(this.acked, [[origin, upto]]);
  }
}
