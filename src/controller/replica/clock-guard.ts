// “Wrong clocks do not write” (docs/replication.md): compares this clock with the peers' clocks.
import type { Clock } from "./replica-ports.ts";
import type { Tuning } from "./tuning.ts";

/** The longest round trip of a usable sample, ms: a longer one is too imprecise. */
const longestRoundTrip = 2_000;
/** The time for which a sample counts, ms. */
const sampleLifeMs = 60_000;
/** The most that slewing changes a wall clock, as a share of the time: adjtimex(2) allows 500 ppm, doubled here. */
const slewRate = 0.001;

/** Compares this controller's wall clock with its peers', and decides when it must not stamp anything. */
export class ClockGuard {
  /** For each peer its wall clock minus this controller's monotonic one, so that a jump of the local wall clock shows at once. */
  readonly #peers = new Map<string, { readonly difference: number; readonly at: number; readonly roundTrip: number }>();
  readonly #clock: Clock;
  readonly #tuning: Tuning;
  /** The wall clock minus the monotonic one when the wall clock was last trusted, and the (monotonic) time of that. */
  #lastTrusted: { readonly difference: number; readonly at: number };
  /** When a jump was noticed (monotonic). */
  #jumpedAt: number | undefined;

  constructor(clock: Clock, tuning: Tuning) {
    this.#clock = clock;
    this.#tuning = tuning;
    this.#lastTrusted = this.#present();
  }

  #present(): { readonly difference: number; readonly at: number } {
    const at = this.#clock.mono();
    return { difference: this.#clock.wall() - at, at };
  }

  /**
   * The jump of the wall clock against the monotonic one, ms, above 0 if ahead; 0: the wall clock is trusted. After a jump it is trusted
   * again when a peer's clock agrees, or when it is set back; with `isAlone` also after `trustJumpAfter`.
   */
  jump({ isAlone }: { readonly isAlone: boolean }): number {
    const present = this.#present();
    const moved = present.difference - this.#lastTrusted.difference;
    const slewed = 1 + (present.at - this.#lastTrusted.at) * slewRate;
    if (Math.abs(moved) <= slewed) this.#trustWallClock();
    if (Math.abs(moved) <= this.#tuning.fenceAt + slewed) {
      this.#jumpedAt = undefined;
      return 0;
    }
    this.#jumpedAt ??= present.at;
    if (!isAlone || present.at - this.#jumpedAt < this.#tuning.trustJumpAfter) return moved;
    this.#trustWallClock();
    return 0;
  }

  #trustWallClock(): void {
    this.#lastTrusted = this.#present();
    this.#jumpedAt = undefined;
  }

  /**
   * Evaluates four timestamps as NTP does (RFC 5905, section 8): two of this controller's monotonic clock (request sent, answer
   * received), two of the peer's wall clock (request received, answer sent). Returns the round trip, ms.
   */
  sample(peer: string, sentMono: number, there: readonly [received: number, sent: number]): number {
    const now = this.#clock.mono();
    const roundTrip = now - sentMono - (there[1] - there[0]);
    if (roundTrip >= 0 && roundTrip <= longestRoundTrip) {
      const difference = (there[0] - sentMono + (there[1] - now)) / 2;
      this.#peers.set(peer, { difference, at: now, roundTrip });
      if (!this.isFenced()) this.#trustWallClock();
    }
    return roundTrip;
  }

  forget(peer: string): void {
    this.#peers.delete(peer);
  }

  /** The peer's wall clock minus this controller's, ms; undefined without a sample of the last minute. */
  offsetOf(peer: string): number | undefined {
    const known = this.#peers.get(peer);
    if (!known || this.#clock.mono() - known.at > sampleLifeMs) return undefined;
    return known.difference - (this.#clock.wall() - this.#clock.mono());
  }

  /** The certain part of the offset to the peer, ms: half the round trip is its error bound (RFC 5905, section 8). */
  driftOf(peer: string): number {
    const offset = Math.abs(this.offsetOf(peer) ?? 0);
    return Math.max(0, offset - (this.#peers.get(peer)?.roundTrip ?? 0) / 2);
  }

  /** Whether this clock is too far from the median of the peers' clocks, as of the last minute. Of two in the middle, the nearer counts. */
  isFenced(): boolean {
    if (this.#peers.size === 0) return false;
    const offsets = [...this.#peers.keys()].flatMap((peer) => this.offsetOf(peer) ?? []).toSorted((a, b) => a - b);
    if (offsets.length === 0) return false;
    const upper = offsets[offsets.length >> 1] as number;
    const lower = offsets[(offsets.length - 1) >> 1] as number;
    return Math.min(Math.abs(upper), Math.abs(lower)) > this.#tuning.fenceAt;
  }

  /** The time for stamps, ms: the wall clock's; after an untrusted jump the time as if there had been no jump. */
  trustedTime(): number {
    const present = this.#present();
    const moved = present.difference - this.#lastTrusted.difference;
    return Math.floor(
      Math.abs(moved) > this.#tuning.fenceAt ? this.#lastTrusted.difference + present.at : this.#clock.wall(),
    );
  }
}
