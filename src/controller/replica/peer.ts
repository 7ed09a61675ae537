// “A deletion stays deleted” (docs/replication.md): each peer's acknowledgements; a deletion is kept until all peers have it.
import { createBackoff, type Backoff } from "#base/backoff.ts";
import { raise, type VersionVector, type WireVector } from "#crdt/version-vector.ts";
import type { PeerMessage, RefusalCode } from "./messages.ts";
import { PhiDetector } from "./phi.ts";
import { RttEstimator } from "./rtt.ts";

export interface PeerProcess {
  /** Random for each process; empty before the greeting. */
  readonly id: string;
  /** The address of the process, for messages. */
  readonly address: string;
}

/** A connection to a peer, for the parts of a replica. */
export interface PeerStream {
  readonly peer: Peer;
  /** Whether this side dialled. */
  readonly isDialled: boolean;
  /** Whether both sides have accepted each other and the connection is not closed. */
  readonly isOpen: boolean;
  /** The peer's process, as its greeting describes it. */
  readonly process: PeerProcess;
  /** The (monotonic) time at which the connection opened. */
  readonly openedAt: number;
  /** Pings; resolves with whether the peer's process answered in time. */
  readonly probe: () => Promise<boolean>;
  /** Tells the peer with the next ping that another process runs under its identity. */
  readonly reportDuplicate: (text: string) => void;
  readonly send: (message: PeerMessage) => void;
  readonly sendHave: () => void;
  /** Brings the next ping forward, since new records became durable here. */
  readonly pingSoon: () => void;
  readonly pull: () => void;
  readonly refuse: (code: RefusalCode, message: string) => void;
  /** Called for a message that no kcore sends: raises an alarm, and closes the connection. */
  readonly malformed: (what: string) => void;
  readonly close: (reason: string) => void;
}

/** An acknowledgement of a peer, as several messages hold one. */
interface Acknowledgement {
  /** The durable transactions. */
  readonly vv: WireVector;
  /** The transactions that the peer was journaling at that time. */
  readonly soon?: WireVector | undefined;
  /** Whether the peer's state is complete; absent where the message does not say. */
  readonly ready?: boolean;
}

/** This controller's knowledge of another controller, kept across connections. */
export class Peer {
  readonly id: string;
  readonly rtt = new RttEstimator(1000);
  readonly phi = new PhiDetector();
  readonly backOff: Backoff;
  #acked: Map<string, number> | undefined;
  #underway: VersionVector = new Map();
  #isReady: boolean | undefined;
  #stream: PeerStream | undefined;
  #isDialling = false;

  constructor(id: string, { cap, random }: { readonly cap: number; readonly random: () => number }) {
    this.id = id;
    this.backOff = createBackoff({ base: () => this.rtt.rto, cap, random, least: 0 });
  }

  /** The version vector that the peer last acknowledged as durable; undefined until the peer spoke. */
  get acked(): VersionVector | undefined {
    return this.#acked;
  }

  /** The transactions that the peer was journaling at its last acknowledgement. */
  get underway(): VersionVector {
    return this.#underway;
  }

  /** Whether the peer's state is complete; undefined until the peer spoke. */
  get isReady(): boolean | undefined {
    return this.#isReady;
  }

  /** Stores an acknowledgement. A delayed one counts, too: durable transactions stay durable. */
  acknowledged({ vv, soon = [], ready = this.#isReady }: Acknowledgement): void {
    this.#acked = new Map(vv);
    this.#underway = new Map(soon);
    this.#isReady = ready;
  }

  /** Called for a push: the peer has its own transactions of `origin` up to `upto`. */
  pushed(origin: string, upto: number): void {
    this.#acked ??= new Map();
    raise(this.#acked, [[origin, upto]]);
  }

  /** The chosen connection, of possibly several. */
  get stream(): PeerStream | undefined {
    return this.#stream;
  }

  choose(stream: PeerStream): void {
    this.#stream = stream;
  }

  /** Called when a connection ended; returns whether it was the chosen one. */
  lost(stream: PeerStream): boolean {
    if (this.#stream !== stream) return false;
    this.#stream = undefined;
    return true;
  }

  get isDialling(): boolean {
    return this.#isDialling;
  }

  setDialling(isDialling: boolean): void {
    this.#isDialling = isDialling;
  }
}
