import { hash64 } from "./hash.ts";
import type { Register } from "./register.ts";

export const bucketCount = 256;

/**
 * An incremental digest of the live registers: 256 buckets by key, each a 64-bit sum of hash(key, dot, value).
 * Sums commute and have inverses (Bellare and Micciancio, EUROCRYPT 1997), so the order of changes does not count.
 * Tombstones are left out: replicas collect them at different times. Two replicas with equal version vectors must have
 * equal digests; a difference raises an alarm and an exchange, but replication itself does not depend on digests.
 */
export class Digest {
  readonly #hi = new Uint32Array(bucketCount);
  readonly #lo = new Uint32Array(bucketCount);
  readonly #origins = new Map<string, number>();

  add(register: Register): void {
    this.#change(register, 1);
  }

  remove(register: Register): void {
    this.#change(register, -1);
  }

  #change({ key, text, o, s }: Register, sign: 1 | -1): void {
    if (text === null) return;
    const keyHash = hash64(key).lo;
    const { hi, lo } = hash64(text, keyHash ^ Math.imul(s, 0x9e3779b1) ^ this.#hashOf(o));
    const bucket = keyHash & (bucketCount - 1);
    const low = (this.#lo[bucket] ?? 0) + sign * lo;
    const carry = low < 0 ? -1 : low > 0xffffffff ? 1 : 0;
    this.#lo[bucket] = low;
    this.#hi[bucket] = (this.#hi[bucket] ?? 0) + sign * hi + carry;
  }

  /** The hash of an origin, cached: origins are few and long. */
  #hashOf(origin: string): number {
    let hash = this.#origins.get(origin);
    if (hash === undefined) this.#origins.set(origin, (hash = hash64(origin).hi));
    return hash;
  }

  /** All buckets, 16 hex digits each. */
  sums(): readonly string[] {
    return Array.from(this.#lo, (lo, bucket) => hex(this.#hi[bucket] ?? 0) + hex(lo));
  }

  /** One digest of all buckets, 16 hex digits. */
  total(): string {
    let hi = 0;
    let lo = 0;
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      // Weighted by the bucket's index, so that two buckets with swapped sums give another total.
      hi = (hi + Math.imul(this.#hi[bucket] ?? 0, 2 * bucket + 1)) >>> 0;
      lo = (lo + Math.imul(this.#lo[bucket] ?? 0, 2 * bucket + 1)) >>> 0;
    }
    return hex(hi) + hex(lo);
  }
}

export function bucketOf(key: string): number {
  return hash64(key).lo & (bucketCount - 1);
}

export function differingBuckets(a: readonly string[], b: readonly string[]): readonly number[] {
  return a.flatMap((sum, bucket) => (sum === b[bucket] ? [] : [bucket]));
}

function hex(word: number): string {
  return word.toString(16).padStart(8, "0");
}
