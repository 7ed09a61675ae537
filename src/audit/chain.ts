import { hash } from "node:crypto";

/** The fields of an entry beside its number, time and link: plain JSON, names and outcomes, never a secret (S-7). */
export type Fields = Readonly<Record<string, unknown>>;

/** An entry of a trail as it was written; `n` counts from 1, `at` is milliseconds since the epoch. */
export type Entry = Fields & { readonly n: number; readonly at: number; readonly prev: string };

/** The last entry of a trail: a reader who has noted it can tell later whether anything up to it was changed. */
export interface Head {
  readonly n: number;
  /** SHA-256 of the entry's line without its line feed, hexadecimal. */
  readonly hash: string;
}

/** Before the first entry. */
export const beginning: Head = { n: 0, hash: "0".repeat(64) };

/**
 * The next entry as a line, with its line feed. It names the SHA-256 of the line before it. A line that is changed, removed or added
 * breaks the chain behind it (Haber and Stornetta, How to Time-Stamp a Digital Document, 1991).
 */
export function linkEntry(head: Head, at: number, fields: Fields): { readonly line: string; readonly head: Head } {
  return linkText(head, at, JSON.stringify(fields));
}

/** The same for fields that are JSON already. */
export function linkText(head: Head, at: number, fields: string): { readonly line: string; readonly head: Head } {
  const n = head.n + 1;
  const text = `{"n":${n},"at":${at},"prev":"${head.hash}"${fields === "{}" ? "" : ","}${fields.slice(1)}`;
  return { line: `${text}\n`, head: { n, hash: hashOf(text) } };
}

export function hashOf(line: string | Uint8Array): string {
  return hash("sha256", line);
}

/**
 * The type of the entry by which a trail tells that its oldest entries were dropped to make room: those `before` a
 * number, of which the last had this `hash`.
 */
export const droppedType = "audit.dropped";

/** The latest time that a Date can hold, ms. */
const lastTime = 8.64e15;

/** A line as an entry; undefined when it is none. */
export function parseEntry(line: string): Entry | undefined {
  try {
    const value = JSON.parse(line) as Partial<Entry> | null;
    const isEntry =
      Number.isSafeInteger(value?.n) &&
      Number(value?.n) >= 1 &&
      typeof value?.at === "number" &&
      Math.abs(value.at) <= lastTime &&
      typeof value.prev === "string";
    return isEntry ? (value as Entry) : undefined;
  } catch {
    return undefined;
  }
}

/** A line of a trail and where it stands. */
export interface PlacedLine {
  readonly file: string;
  /** Counts from 1 in its file. */
  readonly line: number;
  readonly text: string;
}

export interface Damage {
  readonly file: string;
  readonly line: number;
  readonly what: string;
}

export interface TrailCheck {
  /** The number of the first entry that is still kept; how many are. */
  readonly first: number;
  readonly entries: number;
  readonly head: Head;
  /** In their order; none: every entry follows from the one before it, and from the noted heads. */
  readonly damage: readonly Damage[];
  /** Numbers of noted heads whose entries the trail has dropped since, as it may: nothing is left to compare them with. */
  readonly unmet: readonly number[];
}

/**
 * Follows a trail from its first kept line to its last. Changed, missing, added and moved lines are reported where they are met; the
 * check goes on behind each, so that a single one does not make all others suspect.
 */
export class Verifier {
  readonly #noted: ReadonlyMap<number, string>;
  readonly #mustKeep: number;
  readonly #damage: Damage[] = [];
  #head = beginning;
  #first: Pick<Entry, "n" | "prev"> | undefined;
  #entries = 0;
  #bytes = 0;
  #dropped: { readonly before: unknown; readonly hash: unknown; readonly kept: number } | undefined;
  #isAfterDamage = false;
  #last: PlacedLine = { file: "", line: 0, text: "" };

  /**
   * `noted`: heads that were kept elsewhere. `mustKeep`: bytes of entries that the trail keeps at least when it drops its oldest;
   * by default it drops none.
   */
  constructor(noted: readonly Head[] = [], mustKeep = Infinity) {
    this.#noted = new Map(noted.map(({ n, hash }) => [n, hash]));
    this.#mustKeep = mustKeep;
  }

  /** Takes the next line; gives it as an entry when it is one. */
  add(placed: PlacedLine): Entry | undefined {
    const { text } = placed;
    const entry = parseEntry(text);
    const isFirst = this.#entries === 0;
    const due = this.#head.n + 1;
    if (!entry) this.#find(placed, `entry ${due} is no entry any more`);
    else if (isFirst) this.#first = entry;
    else if (entry.n !== due) this.#find(placed, gapOf(due, entry.n));
    else if (entry.prev !== this.#head.hash && !this.#isAfterDamage)
      this.#find(placed, `entry ${due - 1} was changed, or entry ${due} was written anew`);
    if (entry?.n === 1 && isFirst && entry.prev !== beginning.hash)
      this.#find(placed, "the first entry claims one before it");
    if (entry?.["type"] === droppedType)
      this.#dropped = { before: entry["before"], hash: entry["hash"], kept: this.#bytes };
    this.#isAfterDamage = entry === undefined;
    const n = entry?.n ?? due;
    const hash = hashOf(text);
    const noted = this.#noted.get(n);
    if (noted !== undefined && noted !== hash) this.#find(placed, `entry ${n} is not the one that was noted`);
    this.#head = { n, hash };
    this.#entries += 1;
    this.#bytes += Buffer.byteLength(text) + 1;
    this.#last = placed;
    return entry;
  }

  verdict(): TrailCheck {
    const first = this.#first ?? { n: 1, prev: beginning.hash };
    const damage = [...this.#damage];
    const beginsAt = (what: string) =>
      damage.unshift({ file: this.#last.file, line: 1, what: `the trail begins at entry ${first.n}, ${what}` });
    const mayBegin = first.n === 1 || this.#mayBeginAt(first);
    const unmet = mayBegin ? [...this.#noted.keys()].filter((n) => n < first.n - 1) : [];
    if (!mayBegin)
      beginsAt(`and ${this.#mustKeep === Infinity ? "drops none" : "does not tell that the older ones were dropped"}`);
    else if (this.#noted.has(first.n - 1) && this.#noted.get(first.n - 1) !== first.prev)
      beginsAt(`and the one before it is not the one that was noted`);
    const missing = Math.max(0, ...this.#noted.keys());
    if (missing > this.#head.n)
      damage.push({
        ...placeOf(this.#last),
        what: `the trail ends at entry ${this.#head.n}, but entry ${missing} was noted`,
      });
    return { first: first.n, entries: this.#entries, head: this.#head, damage, unmet };
  }

  /** Whether the trail tells that all before this entry were dropped, and kept as much as it must. A file may outlive its removal. */
  #mayBeginAt({ n, prev }: Pick<Entry, "n" | "prev">): boolean {
    const { before, hash, kept } = this.#dropped ?? {};
    if (typeof before !== "number" || before < n || (kept ?? 0) < this.#mustKeep) return false;
    // An earlier version told no hash.
    return before > n || hash === undefined || hash === prev;
  }

  #find(placed: PlacedLine, what: string): void {
    this.#damage.push({ ...placeOf(placed), what });
  }
}

function placeOf({ file, line }: PlacedLine): Omit<Damage, "what"> {
  return { file, line };
}

function gapOf(due: number, n: number): string {
  if (n < due) return `entry ${n} stands where entry ${due} is due`;
  return n === due + 1 ? `entry ${due} is missing` : `entries ${due} to ${n - 1} are missing`;
}
