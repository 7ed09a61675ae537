// “Wrong clocks do not write” (docs/replication.md): decides which stamps of peers wait, since they lie ahead of this controller's clock.
import type { Alarms } from "./alarms.ts";
import type { Clock } from "./replica-ports.ts";
import type { Tuning } from "./tuning.ts";

type StampTreatment =
  | "take"
  /** The pages with the stamp wait for the few seconds until they may be taken. */
  | "wait"
  /** All pulls from the stamp's sender are deferred. */
  | "defer";

/** Judges received stamps by this controller's wall clock, and names in an alarm each origin whose writes wait. */
export class FutureStamps {
  readonly #clock: Clock;
  readonly #tuning: Tuning;
  readonly #alarms: Alarms;
  /** Waiting origins, and how many ms their stamps lie ahead. */
  readonly #origins = new Map<string, number>();
  /** For each peer the origins whose writes wait there. */
  readonly #byPeer = new Map<string, Set<string>>();

  constructor(clock: Clock, tuning: Tuning, alarms: Alarms) {
    this.#clock = clock;
    this.#tuning = tuning;
    this.#alarms = alarms;
  }

  treatmentOf(ms: number): StampTreatment {
    const excess = this.excessOf(ms);
    return excess === 0 ? "take" : excess <= this.#tuning.fenceAt ? "wait" : "defer";
  }

  /** The distance of a stamp beyond the latest acceptable one, ms; 0 if it is acceptable. */
  excessOf(ms: number): number {
    return Math.max(0, ms - this.#clock.wall() - this.#tuning.maxReceiveAhead);
  }

  /** Notes that a peer has a write of this origin and stamp, which waits. */
  noteWaiting(peer: string, origin: string, ms: number): void {
    const ahead = ms - this.#clock.wall();
    this.#origins.set(origin, ahead);
    this.#byPeer.set(peer, (this.#byPeer.get(peer) ?? new Set()).add(origin));
    const text = `${origin} stamped ${ahead} ms ahead of this clock; its writes wait`;
    this.#alarms.raise("CLOCK_SKEW", origin, text);
  }

  /** Called when the origin's writes at the peer were taken. */
  noteTaken(peer: string, origin: string): void {
    this.#byPeer.get(peer)?.delete(origin);
    this.#origins.delete(origin);
    this.#alarms.clear("CLOCK_SKEW", origin);
  }

  /** Called when everything at the peer was taken. */
  noteAllTaken(peer: string): void {
    for (const origin of this.#byPeer.get(peer) ?? []) this.noteTaken(peer, origin);
  }

  hasWaiting(peer: string): boolean {
    return (this.#byPeer.get(peer)?.size ?? 0) > 0;
  }

  /** The origins whose writes wait, and how many ms their stamps lie ahead. */
  get origins(): ReadonlyMap<string, number> {
    return this.#origins;
  }
}
