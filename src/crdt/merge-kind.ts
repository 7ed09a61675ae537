import { compareStamps } from "./hlc.ts";
import type { Register } from "./register.ts";

/**
 * The merge of two registers of one key. Each kind is a total order whose maximum wins, so merging is commutative, associative and
 * idempotent: a join semilattice (Shapiro et al., “A comprehensive study of convergent and commutative replicated data types”, INRIA
 * RR-7506, 2011). A kind that reads the value compares it first, then the stamps, then the origins; no two registers have the same
 * stamp and origin.
 */
export type MergeKind =
  /** Last writer wins (Johnson and Thomas, RFC 677, 1975): by milliseconds, counter, origin. */
  | "lww"
  /** Approvals: (epoch, rejected > approved > pending), then last writer wins. A reject stays until an approve has read it (cluster/rejects.ts). */
  | "approval"
  /** Records of an update: a deletion wins, since the name of a removed update is not reused; else the highest epoch, then last writer. */
  | "epoch"
  /** Manifests of an update: a deletion wins, as above; else the highest generation, then last writer. */
  | "generation"
  /** The value with the latest `notAfter` wins (none: never ends), then the first write. A deletion wins over values that ended before it. */
  | "first"
  /** A deletion wins: acknowledgements of conflicts, and rejects of nodes. */
  | "remove-wins";

/** Above 0 when `a` wins over `b`, below 0 when it loses; 0 for one and the same write only. */
export function compareRegisters(kind: MergeKind, a: Register, b: Register): number {
  switch (kind) {
    case "lww":
      return compareWrites(a, b);
    case "approval":
      return compareNumbers(approvalRank(a.text), approvalRank(b.text)) || compareWrites(a, b);
    case "epoch":
    case "generation":
      if ((a.text === null) !== (b.text === null)) return a.text === null ? 1 : -1;
      return countOf(a.text, kind) - countOf(b.text, kind) || compareWrites(a, b);
    case "first":
      return compareEnds(a, b) || (a.text === null ? compareWrites(a, b) : compareWrites(b, a));
    case "remove-wins":
      return Number(a.text === null) - Number(b.text === null) || compareWrites(a, b);
  }
}

/** The order of writes: stamps, then origins. */
function compareWrites(a: Register, b: Register): number {
  return compareStamps(a, b) || (a.o < b.o ? -1 : a.o > b.o ? 1 : 0);
}

const approvalStates: readonly unknown[] = ["pending", "approved", "rejected"];

function approvalRank(text: string | null): readonly [number, number] {
  return [countOf(text, "epoch"), approvalStates.indexOf(fieldOf(text, "state"))];
}

/** For kind `first`, ms since 1970: of a value the time until which it wins over deletions; of a deletion its stamp. */
export function lastsUntil({ text, ms }: Pick<Register, "text" | "ms">): number {
  return text === null ? ms : readNotAfter(fieldOf(text, "notAfter"));
}

/** A value's `notAfter`, ms since 1970; Infinity unless it is in UTC, so that every replica reads the same time. */
export function readNotAfter(end: unknown): number {
  const isTimestamp = typeof end === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(end);
  // oxlint-disable-next-line no-restricted-globals -- a text is read; no clock is asked
  const at = isTimestamp ? Date.parse(end) : NaN;
  return Number.isNaN(at) ? Infinity : at;
}

/** Compares the ends: the later one wins, so a deletion wins over values that had ended. At the same time a value wins. */
function compareEnds(a: Register, b: Register): number {
  const [x, y] = [lastsUntil(a), lastsUntil(b)];
  return x === y ? Number(a.text !== null) - Number(b.text !== null) : x - y;
}

/** The epoch or generation that a value names; a value without one loses to all that name one. */
function countOf(text: string | null, field: "epoch" | "generation"): number {
  const count = fieldOf(text, field);
  return typeof count === "number" && Number.isSafeInteger(count) && count >= 0 ? count : -1;
}

function fieldOf(text: string | null, name: string): unknown {
  if (text === null) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  } catch {
    return undefined; // A value that is no JSON is kept and relayed, and names no field.
  }
}

function compareNumbers(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] - b[0] || a[1] - b[1];
}
