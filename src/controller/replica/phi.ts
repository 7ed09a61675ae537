// “Watched” (docs/replication.md): how surprising the silence of a peer is, for people and alerts.
import { defaultTuning } from "./tuning.ts";

/** The least standard deviation, ms: a busy machine may be late by so much. */
const leastDeviation = 200;

/**
 * φ-accrual (Hayashibara et al., “The φ accrual failure detector”, 2004): how surprising the present silence is, as −log10 of its
 * probability. For display and alerts; no decision depends on it.
 */
export class PhiDetector {
  readonly #expected: number;
  #intervals: number[] = [];
  #last: number | undefined;

  /**
   * `expected`: the longest usual interval between messages of a healthy peer, ms. Shorter intervals count as this one, so
   * after a burst of messages a silence of that length is not surprising.
   */
  constructor(expected = defaultTuning.pingEvery) {
    this.#expected = expected;
  }

  /** Called for each message, with the monotonic time in ms. */
  heard(now: number): void {
    if (this.#last !== undefined) {
      this.#intervals.push(Math.max(now - this.#last, this.#expected));
      if (this.#intervals.length > 100) this.#intervals.shift();
    }
    this.#last = now;
  }

  /** The surprise of the silence at a (monotonic) time, from 0 to 99. */
  phi(now: number): number {
    if (this.#last === undefined) return 0;
    const samples = this.#intervals.length === 0 ? [this.#expected] : this.#intervals;
    const mean = samples.reduce((sum, value) => sum + value, 0) / samples.length;
    const variance = samples.reduce((sum, value) => sum + (value - mean) ** 2, 0) / samples.length;
    const deviation = Math.max(Math.sqrt(variance), leastDeviation);
    const y = (now - this.#last - mean) / deviation;
    // Logistic approximation of the normal tail, as in Akka's detector.
    const e = Math.exp(-y * (1.5976 + 0.070566 * y * y));
    const tail = y > 0 ? e / (1 + e) : 1 - 1 / (1 + e);
    return tail <= 0 ? 99 : Math.min(Math.max(-Math.log10(tail), 0), 99);
  }
}

export function healthAt(phi: number): "up" | "suspect" | "down" {
  return phi >= 8 ? "down" : phi >= 5 ? "suspect" : "up";
}
