/** For each origin the seq up to which all transactions are known: present, or dominated by a present one. */
export type VersionVector = ReadonlyMap<string, number>;

/** A version vector as plain JSON. */
export type WireVector = readonly (readonly [origin: string, seq: number])[];

/**
 * An immutable, packed version vector, shared by thousands of registers. Each controller has few origins, so a linear search is
 * fastest.
 */
export interface CausalContext {
  readonly origins: readonly string[];
  readonly seqs: readonly number[];
}

export function seqIn(context: CausalContext, origin: string): number {
  const index = context.origins.indexOf(origin);
  return index < 0 ? 0 : (context.seqs[index] ?? 0);
}

/** `vector` without the entry of `own`: a register's own dot implies it. */
export function causalContextOf(vector: VersionVector, own: string): CausalContext {
  const origins: string[] = [];
  const seqs: number[] = [];
  for (const [origin, seq] of vector)
    if (origin !== own) {
      origins.push(origin);
      seqs.push(seq);
    }
  return { origins, seqs };
}

export function covers(vector: VersionVector, origin: string, seq: number): boolean {
  return (vector.get(origin) ?? 0) >= seq;
}

export function coversContext(vector: VersionVector, { origins, seqs }: CausalContext): boolean {
  return origins.every((origin, index) => covers(vector, origin, seqs[index] ?? 0));
}

/** Whether `a` covers every transaction that `b` covers. */
export function dominates(a: VersionVector, b: VersionVector): boolean {
  for (const [origin, seq] of b) if (!covers(a, origin, seq)) return false;
  return true;
}

export function isSameVector(a: VersionVector, b: VersionVector): boolean {
  return dominates(a, b) && dominates(b, a);
}

/** Raises `target` to the join (entry-wise maximum) with `other`. */
export function raise(target: Map<string, number>, other: Iterable<readonly [string, number]>): void {
  for (const [origin, seq] of other) if (seq > (target.get(origin) ?? 0)) target.set(origin, seq);
}

export function toWire(vector: VersionVector): WireVector {
  return [...vector];
}
