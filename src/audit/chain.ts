import { hash } from "node:crypto";

/** The fields of an entry beside its number, time and `prev`: plain JSON, names and outcomes, never a secret (S-7). */
export type EntryFields = Readonly<Record<string, unknown>>;

/** An entry of a trail: `n` counts from 1, `at` is milliseconds since 1970, `prev` is the hash of the line before. */
export type TrailEntry = EntryFields & { readonly n: number; readonly at: number; readonly prev: string };

/** The last entry of a trail: a reader who notes it can later detect any change up to it. */
export interface TrailHead {
  readonly n: number;
  /** SHA-256 of the entry's line without its line feed, hexadecimal. */
  readonly hash: string;
}

/** The head of an empty trail. */
export const beginning: TrailHead = { n: 0, hash: "0".repeat(64) };

/**
 * The next entry as a line with its line feed, and the new head. The entry has the SHA-256 of the line before: a changed,
 * removed or added line breaks the chain. (Haber and Stornetta, How to Time-Stamp a Digital Document, 1991)
 */
export function linkEntry(
  head: TrailHead,
  at: number,
  fields: EntryFields,
): { readonly line: string; readonly head: TrailHead } {
  return linkText(head, at, JSON.stringify(fields));
}

/** As `linkEntry`, for fields that are JSON text already. */
export function linkText(
  head: TrailHead,
  at: number,
  fields: string,
): { readonly line: string; readonly head: TrailHead } {
  const n = head.n + 1;
  const text = `{"n":${n},"at":${at},"prev":"${head.hash}"${fields === "{}" ? "" : ","}${fields.slice(1)}`;
  return { line: `${text}\n`, head: { n, hash: lineHash(text) } };
}

/** SHA-256 of a line without its line feed, hexadecimal. */
export function lineHash(line: string | Uint8Array): string {
  return hash("sha256", line);
}

/**
 * The type of the entry that records the removal of a trail's oldest entries. Its `before` is the number of the first kept entry,
 * its `hash` the hash of the last dropped entry.
 */
export const droppedType = "audit.dropped";

/** The latest time of a Date, in milliseconds since 1970. */
const lastTime = 8.64e15;

/** Parses a line; undefined when it is no entry. */
export function parseEntry(line: string): TrailEntry | undefined {
  try {
    const value = JSON.parse(line) as Partial<TrailEntry> | null;
    const isEntry =
      Number.isSafeInteger(value?.n) &&
      Number(value?.n) >= 1 &&
      typeof value?.at === "number" &&
      Math.abs(value.at) <= lastTime &&
      typeof value.prev === "string";
    return isEntry ? (value as TrailEntry) : undefined;
  } catch {
    return undefined;
  }
}

export interface PlacedLine {
  readonly file: string;
  /** Counts from 1 in its file. */
  readonly line: number;
  readonly text: string;
}

/** A place where the chain does not hold, and why. */
export interface TrailDamage {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

export interface TrailCheck {
  /** The number of the first kept entry. */
  readonly first: number;
  /** The count of kept entries. */
  readonly entries: number;
  readonly head: TrailHead;
  /** In order; empty when every entry follows from the one before and matches the noted heads. */
  readonly damage: readonly TrailDamage[];
  /** Numbers of noted heads that cannot be compared any more, because the trail has dropped their entries, as it may. */
  readonly droppedHeads: readonly number[];
}

/**
 * Checks a trail from its first kept line to its last, and reports changed, missing, added and moved lines. The lines after a
 * damaged one are still checked.
 */
export class Verifier {
  readonly #noted: ReadonlyMap<number, string>;
  readonly #mustKeep: number;
  readonly #damage: TrailDamage[] = [];
  #head = beginning;
  #first: Pick<TrailEntry, "n" | "prev"> | undefined;
  #entries = 0;
  #bytes = 0;
  #dropped: { readonly before: unknown; readonly hash: unknown; readonly kept: number } | undefined;
  #isAfterDamage = false;
  #last: PlacedLine = { file: "", line: 0, text: "" };

  /**
   * `noted`: heads that a reader noted elsewhere. `mustKeep`: the least bytes of entries that a trail keeps when it drops its oldest
   * entries; by default a trail may drop none.
   */
  constructor(noted: readonly TrailHead[] = [], mustKeep = Infinity) {
    this.#noted = new Map(noted.map(({ n, hash }) => [n, hash]));
    this.#mustKeep = mustKeep;
  }

  /** Checks the next line; returns its entry if it is one. */
  add(placed: PlacedLine): TrailEntry | undefined {
    const { text } = placed;
    const entry = parseEntry(text);
    const isFirst = this.#entries === 0;
    const due = this.#head.n + 1;
    if (!entry) this.#report(placed, `entry ${due} is no entry any more`);
    else if (isFirst) this.#first = entry;
    else if (entry.n !== due) this.#report(placed, gapOf(due, entry.n));
    else if (entry.prev !== this.#head.hash && !this.#isAfterDamage)
      this.#report(placed, `entry ${due - 1} was changed, or entry ${due} was written anew`);
    if (entry?.n === 1 && isFirst && entry.prev !== beginning.hash)
      this.#report(placed, "the first entry names an entry before it");
    if (entry?.["type"] === droppedType)
      this.#dropped = { before: entry["before"], hash: entry["hash"], kept: this.#bytes };
    this.#isAfterDamage = entry === undefined;
    const n = entry?.n ?? due;
    const hash = lineHash(text);
    const noted = this.#noted.get(n);
    if (noted !== undefined && noted !== hash) this.#report(placed, `entry ${n} is not the one that was noted`);
    this.#head = { n, hash };
    this.#entries += 1;
    this.#bytes += Buffer.byteLength(text) + 1;
    this.#last = placed;
    return entry;
  }

  /** The result, once all lines were added. */
  verdict(): TrailCheck {
    const first = this.#first ?? { n: 1, prev: beginning.hash };
    const damage = [...this.#damage];
    const beginsAt = (what: string) =>
      damage.unshift({ file: this.#last.file, line: 1, what: `the trail begins at entry ${first.n}, ${what}` });
    const mayBegin = first.n === 1 || this.#mayBeginAt(first);
    const droppedHeads = mayBegin ? [...this.#noted.keys()].filter((n) => n < first.n - 1) : [];
    if (!mayBegin)
      beginsAt(`and ${this.#mustKeep === Infinity ? "drops none" : "does not tell that the older ones were dropped"}`);
    else if (this.#noted.has(first.n - 1) && this.#noted.get(first.n - 1) !== first.prev)
      beginsAt(`and entry ${first.n - 1} is not the one that was noted`);
    const missing = Math.max(0, ...this.#noted.keys());
    if (missing > this.#head.n)
      damage.push({
        file: this.#last.file,
        line: this.#last.line,
        what: `the trail ends at entry ${this.#head.n}, but entry ${missing} was noted`,
      });
    return { first: first.n, entries: this.#entries, head: this.#head, damage, droppedHeads };
  }

  /**
   * Whether a recorded removal covers all entries before this one, and the trail kept `mustKeep` bytes. After a crash a file may
   * remain that the record calls dropped.
   */
  #mayBeginAt({ n, prev }: Pick<TrailEntry, "n" | "prev">): boolean {
    const { before, hash, kept } = this.#dropped ?? {};
    if (typeof before !== "number" || before < n || (kept ?? 0) < this.#mustKeep) return false;
    return before > n || hash === prev;
  }

  #report({ file, line }: PlacedLine, what: string): void {
    this.#damage.push({ file, line, what });
  }
}

function gapOf(due: number, n: number): string {
  if (n < due) return `entry ${n} stands where entry ${due} is due`;
  return n === due + 1 ? `entry ${due} is missing` : `entries ${due} to ${n - 1} are missing`;
}
