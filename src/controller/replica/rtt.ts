// “Convergent” (docs/replication.md): timeouts and pauses for a peer, learned from its answers.
/**
 * The timeout for a peer, estimated from its round trips: Jacobson and Karels, “Congestion avoidance and control” (1988), as in RFC 6298,
 * with bounds for controllers. Karn's rule (no sample from a repeated request) is not needed: each request has its own number, so answers
 * are never ambiguous.
 */
export class RttEstimator {
  #smoothed: number | undefined;
  #variation = 0;
  #backOff = 1;
  readonly #initial: number;

  /** `initial`: the timeout before the first sample, ms. */
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

  /** The timeout for a page, ms. A page of 1 MiB that takes longer does not arrive at all, since pings behind it end the connection. */
  get pageTimeout(): number {
    return 2 * this.rto + 11_500;
  }

  get connectTimeout(): number {
    return clamp(3 * this.rto, 1000, 5000);
  }

  /**
   * Milliseconds from an unanswered ping to the next one. It is bounded, since a dead link must be found in time, even where
   * lost packets have raised the timeout.
   */
  get pingAgain(): number {
    return clamp(4 * this.rto, 1000, 2000);
  }
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
