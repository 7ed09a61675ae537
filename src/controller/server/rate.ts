/** How fast one peer may ask: tokens a second, and how many may be saved up. */
export interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** A token bucket for each key; whoever has none left is told so (S-17). */
export function limitRate({ perSecond, burst }: Rate, monotonic: () => number): (key: string) => boolean {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return (key) => {
    const now = monotonic();
    let bucket = buckets.get(key);
    if (!bucket) {
      // Full buckets say nothing that a missing one does not.
      if (buckets.size > 10_000) for (const [other, { at }] of buckets) if (now - at > 60_000) buckets.delete(other);
      buckets.set(key, (bucket = { tokens: burst, at: now }));
    }
    bucket.tokens = Math.min(burst, bucket.tokens + ((now - bucket.at) / 1000) * perSecond);
    bucket.at = now;
    if (bucket.tokens < 1) return false;
    bucket.tokens--;
    return true;
  };
}
