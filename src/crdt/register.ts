import type { CausalContext } from "./version-vector.ts";
import type { Stamp } from "./hlc.ts";

/**
 * The id of a transaction, the same for all its registers: its origin and its sequence number there
 * (“dot” as in Almeida et al., Dotted Version Vectors, 2012). An origin is one generation of a controller, `ID#WORD`;
 * its seqs start at 1 and are never used twice.
 */
export interface Dot {
  readonly o: string;
  readonly s: number;
}

/**
 * One write of a key. Immutable: merging chooses between registers and never edits one.
 * `text` is the value as JSON, opaque to all but a few merge kinds; null is a tombstone.
 */
export interface Register extends Stamp, Dot {
  readonly key: string;
  readonly text: string | null;
  /** The writer's version vector at the time, without the entry of its own origin: the writer has seen its own writes below `s`. */
  readonly x: CausalContext;
}

/** The limits for writers, in UTF-8 bytes. A replica keeps and relays larger registers, but does not show them. */
export const maxKeyBytes = 256;
export const maxValueBytes = 64 * 1024;

export function isSameDot(a: Dot, b: Dot): boolean {
  return a.s === b.s && a.o === b.o;
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
