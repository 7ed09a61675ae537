import type { WireVector } from "./version-vector.ts";
export type { WireVector } from "./version-vector.ts";

/** `[key, text, ms, c, index of the origin, seq, index of the context]` */
export type WireRegister = readonly [string, string | null, number, number, number, number, number];

/** Registers as plain JSON, for the wire, the journal and the snapshot; names of origins and contexts are said once. */
export interface Page {
  readonly origins: readonly string[];
  /** Each a flat list of pairs: index of the origin, seq. */
  readonly contexts: readonly (readonly number[])[];
  readonly registers: readonly WireRegister[];
}
