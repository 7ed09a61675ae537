/** Two unsigned 32-bit halves. */
export interface Hash64 {
  readonly hi: number;
  readonly lo: number;
}

/**
 * A 64-bit hash of UTF-16 code units (two multiply-xorshift lanes, finalised as MurmurHash3 is). It is not cryptographic: it detects
 * bugs and names conflicts, and authenticates nothing.
 */
export function hash64(text: string, seed = 0): Hash64 {
  let h1 = 0xdeadbeef ^ seed;
  let h2 = 0x41c6ce57 ^ seed;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    h1 = Math.imul(h1 ^ unit, 2654435761);
    h2 = Math.imul(h2 ^ unit, 1597334677);
  }
  h1 = Math.imul(h1 ^ (h1 >>> 16), 2246822507) ^ Math.imul(h2 ^ (h2 >>> 13), 3266489909);
  h2 = Math.imul(h2 ^ (h2 >>> 16), 2246822507) ^ Math.imul(h1 ^ (h1 >>> 13), 3266489909);
  return { hi: h2 >>> 0, lo: h1 >>> 0 };
}

export function hex64({ hi, lo }: Hash64): string {
  return hi.toString(16).padStart(8, "0") + lo.toString(16).padStart(8, "0");
}
