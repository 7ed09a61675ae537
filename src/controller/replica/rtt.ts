// “Convergent” (docs/replication.md): how long to wait for a peer, learned from its answers.
/**
 * The time to wait for a peer, learned from it: Jacobson and Karels, “Congestion avoidance and control” (1988), as in RFC 6298, with
 * bounds for controllers. Karn's rule (no sample from a repeated request) is the caller's: each request here has a number of its own, so
 * answers are never ambiguous.
 */
export class RttEstimator {
  #smoothed: number | undefined;
  #variation = 0;
  #backOff = 1;
  #bytesPerMs = 100;
  readonly #initial: number;

  /** `initial`: the timeout before anything is known; 1 s within a datacenter, 3 s across. */
  constructor(initial: number) {
    this.#initial = initial;
  }

  sample(rtt: number): void {
    this.#backOff = 1;
    if (this.#smoothed === undefined) {
      this.#smoothed = rtt;
      this.#variation = rtt / 2;
      return;
    }
    this.#variation += (Math.abs(rtt - this.#smoothed) - this.#variation) / 4;
    this.#smoothed += (rtt - this.#smoothed) / 8;
  }

  /** A transfer of so many bytes took so long. */
  transferred(bytes: number, ms: number): void {
    if (bytes > 16_384 && ms > 0) this.#bytesPerMs += (bytes / ms - this.#bytesPerMs) / 8;
  }

  timedOut(): void {
    this.#backOff = Math.min(this.#backOff * 2, 64);
  }

  get rtt(): number | undefined {
    return this.#smoothed;
  }

  /** Retransmission timeout, ms. */
  get rto(): number {
    const base = this.#smoothed === undefined ? this.#initial : this.#smoothed + 4 * this.#variation + 10;
    return clamp(base * this.#backOff, 200, 30_000);
  }

  /** Milliseconds after which an answer of so many bytes is given up. */
  deadline(bytes: number): number {
    return 2 * this.rto + bytes / Math.max(this.#bytesPerMs, 1) + 1000;
  }

  get connectTimeout(): number {
    return clamp(3 * this.rto, 1000, 5000);
  }

  /**
   * Milliseconds after a ping without an answer. The timeout grows on a link that loses packets, but a dead link must
   * not be found later for that.
   */
  get pingAgain(): number {
    return clamp(4 * this.rto, 1000, 2000);
  }
}

/** Full jitter (Brooker, “Exponential backoff and jitter”, 2015): waits 0 to a bound that doubles. Reset by any word from the peer. */
export class BackOff {
  #attempt = 0;
  readonly #cap: number;

  /** `cap` in ms: 3 s between controllers, which are few; 30 s for agents. */
  constructor(cap: number) {
    this.#cap = cap;
  }

  next(base: number, random: () => number): number {
    const bound = Math.min(this.#cap, base * 2 ** Math.min(this.#attempt++, 16));
    return random() * bound;
  }

  reset(): void {
    this.#attempt = 0;
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
