/**
 * Hybrid logical clock (Kulkarni, Demirbas et al., “Logical Physical Clocks”, OPODIS 2014): follows the wall clock, never
 * runs backwards, and exceeds every stamp that its replica has seen, so its order agrees with happened-before.
 * `ms` has 48 bits, `c` 16.
 */
export interface Stamp {
  /** Milliseconds since 1970. */
  readonly ms: number;
  /** Orders stamps of one millisecond. */
  readonly c: number;
}

export const zero: Stamp = { ms: 0, c: 0 };
export const maxCounter = 0xffff;
const maxMs = 2 ** 48 - 1;

/** The next stamp to issue: above `last`, and not below the wall clock. */
export function nextStamp(last: Stamp, wall: number): Stamp {
  if (wall > last.ms) return { ms: wall, c: 0 };
  // A full counter borrows from the next millisecond; in practice no millisecond has 65,536 stamps.
  return last.c < maxCounter ? { ms: last.ms, c: last.c + 1 } : { ms: last.ms + 1, c: 0 };
}

/** The clock after a stamp was seen: the next issued stamp is above both. */
export function witness(last: Stamp, seen: Stamp): Stamp {
  return compareStamps(seen, last) > 0 ? { ms: seen.ms, c: seen.c } : last;
}

export function compareStamps(a: Stamp, b: Stamp): number {
  return a.ms - b.ms || a.c - b.c;
}

export function isStamp(ms: unknown, c: unknown): boolean {
  return isWithin(ms, maxMs) && isWithin(c, maxCounter);
}

/** 16 hexadecimal digits that sort as stamps do. */
export function encodeStamp({ ms, c }: Stamp): string {
  return ms.toString(16).padStart(12, "0") + c.toString(16).padStart(4, "0");
}

/** @throws RangeError when the text is no output of {@link encodeStamp}. */
export function decodeStamp(text: string): Stamp {
  if (!/^[0-9a-f]{16}$/.test(text)) throw new RangeError(`not a stamp: ${JSON.stringify(text)}`);
  return { ms: Number.parseInt(text.slice(0, 12), 16), c: Number.parseInt(text.slice(12), 16) };
}

function isWithin(value: unknown, max: number): boolean {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= max;
}
