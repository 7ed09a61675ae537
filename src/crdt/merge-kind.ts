import { compareStamps } from "./hlc.ts";
import type { Register } from "./register.ts";

/**
 * The merge of two registers of one key. Each kind is a total order whose maximum wins, so merging is commutative, associative and
 * idempotent: a join semilattice (Shapiro et al., “A comprehensive study of convergent and commutative replicated data types”, INRIA
 * RR-7506, 2011). The value comes first, if a kind looks at it; the stamp decides between equals; no two registers are equal in stamp
 * and origin.
 */
export type MergeKind =
  /** Last writer wins (Johnson and Thomas, RFC 677, 1975): by milliseconds, counter, origin. */
  | "lww"
  /** Approvals: (epoch, rejected > approved > pending), then last writer: inside an epoch a reject stands. */
  | "approval"
  /** Registers of an update's owner: a deletion stands, since a removed update's name is not used again; else the highest epoch, then last writer. */
  | "epoch"
  /** Manifests of an update: a deletion stands, as above; else the highest generation, then last writer. */
  | "generation"
  /** The first write stands. It is never deleted, or not before the time that its field `notAfter` names. */
  | "first"
  /** A deletion stands: conflicts that were acknowledged. */
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

/** The order of writes: stamps, then the bytes of the origins. */
function compareWrites(a: Register, b: Register): number {
  return compareStamps(a, b) || (a.o < b.o ? -1 : a.o > b.o ? 1 : 0);
}

const approvalStates: readonly unknown[] = ["pending", "approved", "rejected"];

function approvalRank(text: string | null): readonly [number, number] {
  return [countOf(text, "epoch"), approvalStates.indexOf(fieldOf(text, "state"))];
}

/** Until when no deletion wins over a value of kind “first”, ms since 1970; of a deletion, when it was written. */
export function endOf({ text, ms }: Pick<Register, "text" | "ms">): number {
  return text === null ? ms : readEnd(fieldOf(text, "notAfter"));
}

/** A value's `notAfter`, ms since 1970; Infinity unless every replica reads the same time, which takes a zone. */
export function readEnd(end: unknown): number {
  const isTime = typeof end === "string" && /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/.test(end);
  // oxlint-disable-next-line no-restricted-globals -- a text is read; no clock is asked
  const at = isTime ? Date.parse(end) : NaN;
  return Number.isNaN(at) ? Infinity : at;
}

/** By when they end, so that the order is total: of two values the longer stands, and a deletion over those that had ended. */
function compareEnds(a: Register, b: Register): number {
  const [x, y] = [endOf(a), endOf(b)];
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
    return undefined; // Kept and relayed all the same; it only has no rank.
  }
}

function compareNumbers(a: readonly [number, number], b: readonly [number, number]): number {
  return a[0] - b[0] || a[1] - b[1];
}
