import type { Context } from "./version-vector.ts";
import type { Stamp } from "./hlc.ts";

/**
 * An origin and the number of its transaction: the name of one transaction, the same for all its registers
 * (“dot” as in Almeida et al., Dotted Version Vectors, 2012). An origin is one generation of a controller, `ID#WORD`;
 * its seqs start at 1 and are never used twice.
 */
export interface Dot {
  readonly o: string;
  readonly s: number;
}

/**
 * The last write of a key that a replica knows. Immutable; merging chooses between registers, never edits one.
 * `text` is the value as JSON, opaque to all but a few merge kinds; null is a tombstone.
 */
export interface Register extends Stamp, Dot {
  readonly key: string;
  readonly text: string | null;
  /** The version vector of the writer, without its own transactions (it has seen all below `s`). */
  readonly x: Context;
}

/** The size that a writer keeps to, in UTF-8 bytes; larger values are kept and relayed, but not shown. */
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
