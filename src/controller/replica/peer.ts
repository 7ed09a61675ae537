import { covers, dominates, type VersionVector, type WireVector } from "#crdt/version-vector.ts";
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
  /** The peer's process, and since when this connection stands (monotonic). */
  readonly boot: string;
  readonly openedAt: number;
  /** Where the peer's process is, in words. */
  readonly where: string;
  /** Tells it in the next pings that another process runs as it. */
  copies: string | undefined;
  /** Whether the process at its other end is alive. */
  readonly probe: (told: (isAlive: boolean) => void) => void;
  /** How far own transactions were sent. */
  pushed: { readonly origin: string; readonly seq: number };
  readonly send: (message: PeerMessage) => void;
  readonly tellHave: () => void;
  /** Something became durable here. */
  readonly hasNews: () => void;
  readonly pull: () => void;
  readonly refuse: (code: RefusalCode, message: string) => void;
  /** It sent what no kcore sends: an alarm, and the end of the connection. */
  readonly malformed: (what: string) => void;
  readonly close: (reason: string) => void;
}

const mostTold = 16_384;

type Greeting = Extract<PeerMessage, { t: "hello" }>;

/** What this controller knows of another one; outlives its connections. */
export class Peer {
  readonly id: string;
  readonly rtt = new RttEstimator(1000);
  readonly phi = new PhiDetector();
  readonly backOff: BackOff;
  /** What it last said it holds durably; undefined until it spoke. */
  acked: Map<string, number> | undefined;
  /** What it was journaling as it said so. */
  soon = new Map<string, number>();
  /** How often it said what it holds. */
  words = 0;
  isReady: boolean | undefined;
  /** What it writes under. */
  origin = "";
  /** What its process wrote under so far: of these it knows all. */
  readonly origins = new Set<string>();
  #boot = "";
  /** The floor of the full exchange that it offered last, and when (monotonic). */
  offer: { readonly floor: VersionVector; readonly at: number } | undefined;
  /** The one connection that counts. */
  stream: Stream | undefined;
  isDialling = false;
  /** Origins whose stamps it holds and that wait for our clock. */
  readonly deferred = new Set<string>();
  refusal: { readonly code: string; readonly message: string } | undefined;

  readonly #isKnown: (origin: string) => boolean;

  /** `isKnown`: whether an origin stands in our own version vector. */
  constructor(id: string, backOffCap: number, isKnown: (origin: string) => boolean) {
    this.id = id;
    this.#isKnown = isKnown;
    this.backOff = new BackOff(backOffCap);
  }

  /** A greeting says what is; later words of one connection may come late and only add. */
  greeted({ origin, boot, vv, soon = [] }: Greeting): void {
    this.words++;
    if (boot !== this.#boot) this.origins.clear();
    this.#boot = boot;
    this.writesUnder(origin);
    this.acked = new Map();
    this.soon = new Map();
    this.#raise(this.acked, vv);
    this.#raise(this.soon, soon);
  }

  /** Of origins that are not known here a peer can invent any number; of so many what it says is kept. */
  #raise(told: Map<string, number>, vector: Iterable<readonly [string, number]>): void {
    for (const [origin, seq] of vector)
      if (!covers(told, origin, seq) && (told.size < mostTold || told.has(origin) || this.#isKnown(origin)))
        told.set(origin, seq);
  }

  writesUnder(origin: string): void {
    this.origin = origin;
    this.origins.add(origin);
  }

  /** Whether it says to have forgotten deletions that one with this vector has not seen. */
  offersMoreThan(vector: VersionVector): boolean {
    return this.offer !== undefined && !dominates(vector, this.offer.floor);
  }

  confirmed(vector: Iterable<readonly [string, number]>, soon: WireVector = []): void {
    this.words++;
    this.acked ??= new Map();
    this.#raise(this.acked, vector);
    this.#raise(this.soon, soon);
  }
}
