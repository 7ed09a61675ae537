/** A token bucket's rate: tokens per second, and its capacity. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

interface Bucket {
  tokens: number;
  at: number;
}

/** The least number of keys above which full buckets are removed. */
const sweepFrom = 10_000;

/** A token bucket for each key; the function takes a token, and returns false if the bucket is empty (S-17). */
export function limitRate({ perSecond, burst }: Rate, monotonic: () => number): (key: string) => boolean {
  const buckets = new Map<string, Bucket>();
  let sweepAbove = sweepFrom;
  const tokensOf = ({ tokens, at }: Bucket, now: number): number =>
    Math.min(burst, tokens + ((now - at) / 1000) * perSecond);
  /**
   * Removes full buckets, which equal missing ones. The threshold then grows with the remaining ones, so that they are not
   * checked again with each new key.
   */
  const sweep = (now: number): void => {
    for (const [key, bucket] of buckets) if (tokensOf(bucket, now) === burst) buckets.delete(key);
    sweepAbove = Math.max(sweepFrom, 2 * buckets.size);
  };
  return (key) => {
    const now = monotonic();
    let bucket = buckets.get(key);
    if (!bucket) {
      if (buckets.size > sweepAbove) sweep(now);
      buckets.set(key, (bucket = { tokens: burst, at: now }));
    }
    bucket.tokens = tokensOf(bucket, now);
    bucket.at = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  };
}
