import { hash } from "node:crypto";

/** What an entry tells beside its number, time and link: plain JSON, names and outcomes, never a secret (S-7). */
export type Fields = Readonly<Record<string, unknown>>;

/** An entry of a trail as it was written; `n` counts from 1, `at` is milliseconds since the epoch. */
export type Entry = Fields & { readonly n: number; readonly at: number; readonly prev: string };

/** The last entry of a trail: who has noted it can tell later whether anything up to it was changed. */
export interface Head {
  readonly n: number;
  /** SHA-256 of the entry's line without its line feed, hexadecimal. */
  readonly hash: string;
}

/** Before the first entry. */
export const beginning: Head = { n: 0, hash: "0".repeat(64) };

/**
 * The next entry as a line (with its line feed) that names the SHA-256 of the line before it: none can be changed, removed or put
 * in between without all that follow being written anew (Haber and Stornetta, How to Time-Stamp a Digital Document, 1991).
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

/** The type of the entry by which a trail tells that those `before` a number were dropped to make room. */
export const droppedType = "audit.dropped";

/** A line as an entry; undefined when it is none. */
export function parseEntry(line: string): Entry | undefined {
  try {
    const value = JSON.parse(line) as Partial<Entry> | null;
    const isEntry = typeof value?.n === "number" && typeof value.at === "number" && typeof value.prev === "string";
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

export interface Verdict {
  /** The number of the first entry that is still kept; how many are. */
  readonly first: number;
  readonly entries: number;
  readonly head: Head;
  /** In their order; none: every entry follows from the one before it, and from what was noted. */
  readonly damage: readonly Damage[];
}

/**
 * Follows a trail from its first kept line to its last. Changed, missing, added and moved lines are told where they are met; then it goes
 * on from there, so that one of them does not make all others suspect. `noted` are heads that somebody has kept elsewhere.
 */
export class Verifier {
  readonly #noted: ReadonlyMap<number, string>;
  readonly #damage: Damage[] = [];
  #head = beginning;
  #first = 1;
  #entries = 0;
  #dropped = 0;
  #isAfterDamage = false;
  #last: PlacedLine = { file: "", line: 0, text: "" };

  constructor(noted: readonly Head[] = []) {
    this.#noted = new Map(noted.map(({ n, hash }) => [n, hash]));
  }

  /** Takes the next line; gives it as an entry when it is one. */
  add(placed: PlacedLine): Entry | undefined {
    const { text } = placed;
    const entry = parseEntry(text);
    const isFirst = this.#entries === 0;
    const due = this.#head.n + 1;
    if (!entry) this.#find(placed, `entry ${due} is no entry any more`);
    else if (isFirst) this.#first = entry.n;
    else if (entry.n !== due) this.#find(placed, gapOf(due, entry.n));
    else if (entry.prev !== this.#head.hash && !this.#isAfterDamage)
      this.#find(placed, `entry ${due - 1} was changed, or entry ${due} was written anew`);
    if (entry?.n === 1 && isFirst && entry.prev !== beginning.hash)
      this.#find(placed, "the first entry claims one before it");
    if (entry?.["type"] === droppedType) this.#dropped = Number(entry["before"]);
    this.#isAfterDamage = entry === undefined;
    const n = entry?.n ?? due;
    const hash = hashOf(text);
    const noted = this.#noted.get(n);
    if (noted !== undefined && noted !== hash) this.#find(placed, `entry ${n} is not the one that was noted`);
    this.#head = { n, hash };
    this.#entries += 1;
    this.#last = placed;
    return entry;
  }

  verdict(): Verdict {
    const missing = Math.max(0, ...this.#noted.keys());
    const damage = [...this.#damage];
    if (this.#first > Math.max(1, this.#dropped))
      damage.unshift({
        file: this.#last.file,
        line: 1,
        what: `the trail begins at entry ${this.#first}, and does not tell that the older ones were dropped`,
      });
    if (missing > this.#head.n)
      damage.push({
        ...placeOf(this.#last),
        what: `the trail ends at entry ${this.#head.n}, but entry ${missing} was noted`,
      });
    return { first: this.#first, entries: this.#entries, head: this.#head, damage };
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
