import type { Clock } from "./replica-ports.ts";
import type { Tuning } from "./tuning.ts";

/** Samples that took longer say too little about the clock. */
const longestRoundTrip = 2_000;
const keptFor = 60_000;

/** Compares this controller's wall clock with its peers', and says when it must not stamp anything. */
export class ClockGuard {
  /** Per peer its wall clock minus our monotonic one, so that a jump of our own wall shows at once. */
  readonly #peers = new Map<string, { readonly difference: number; readonly at: number }>();
  readonly #clock: Clock;
  readonly #tuning: Tuning;

  constructor(clock: Clock, tuning: Tuning) {
    this.#clock = clock;
    this.#tuning = tuning;
  }

  /**
   * Four timestamps as in NTP (RFC 5905, section 8): sent and received here by the monotonic clock, received and sent there by
   * the peer's wall.
   */
  sample(peer: string, sentMono: number, there: readonly [received: number, sent: number]): number {
    const now = this.#clock.mono();
    const roundTrip = now - sentMono - (there[1] - there[0]);
    if (roundTrip >= 0 && roundTrip <= longestRoundTrip) {
      const difference = (there[0] - sentMono + (there[1] - now)) / 2;
      this.#peers.set(peer, { difference, at: now });
    }
    return roundTrip;
  }

  forget(peer: string): void {
    this.#peers.delete(peer);
  }

  /** The peer's clock minus ours, ms. */
  offsetOf(peer: string): number | undefined {
    const known = this.#peers.get(peer);
    if (!known || this.#clock.mono() - known.at > keptFor) return undefined;
    return known.difference - (this.#clock.wall() - this.#clock.mono());
  }

  /** Whether this clock is too far from the median of those of the reachable peers. Of two in the middle, the nearer counts. */
  isFenced(): boolean {
    if (this.#peers.size === 0) return false;
    const offsets = [...this.#peers.keys()].flatMap((peer) => this.offsetOf(peer) ?? []).toSorted((a, b) => a - b);
    if (offsets.length === 0) return false;
    const upper = offsets[offsets.length >> 1] as number;
    const lower = offsets[(offsets.length - 1) >> 1] as number;
    return Math.min(Math.abs(upper), Math.abs(lower)) > this.#tuning.fenceAt;
  }

  /** How far a stamp lies beyond what may be accepted now; 0 when it may. */
  tooFarAhead(ms: number): number {
    return Math.max(0, ms - this.#clock.wall() - this.#tuning.maxReceiveAhead);
  }
}
