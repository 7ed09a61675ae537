/** Characters of a text by which a place is judged: nearly always no form begins with them. */
const KEY = 4;
/** Where a line ends within digits: a break, or one in a text of JSON, and what indents the next line. At a text's end half of one will do. */
const BREAK = /(?:\r?\n|(?:\\r)?\\n|(?:\r|\\(?:r\\?)?)$)[ \t]*/g;
/** A text that ends in so many digits may end in some of a form, however few. */
const DIGITS = /[A-Za-z0-9+/_-]{16}$/;
/** So many digits of a form are suspect whatever stands before them. */
const SUSPECT = 8;
/** What is held and longer is looked at again when an eighth more has come: else each piece would cost as much as the whole. */
const LONG = 4096;

/** From where to where. */
type Span = readonly [from: number, to: number];

/** Where forms are, in the order of their beginnings, and where the end begins that is the start of a form. */
interface Sight {
  readonly spans: readonly Span[];
  readonly tail: number;
}

/** What all forms below have in common, from where those above part. */
interface Branch {
  edge: string;
  /** A form ends here. */
  ends: boolean;
  next: Map<number, Branch>;
}

/** Finds texts of a list in others: each place is looked at once, however many texts there are. */
class FormTree {
  readonly #root = new Map<number, Branch>();
  /** What {@link hashAt} makes of their first characters: one look into a table for each place of a text. */
  readonly #known = new Uint8Array(0x1_0000);
  longest = 0;

  /** Forms of four characters and more. */
  add(forms: readonly string[]): void {
    for (const form of forms) {
      this.#known[hashAt(form, 0)] = 1;
      this.longest = Math.max(this.longest, form.length);
      let [next, at] = [this.#root, 0];
      while (at < form.length) {
        const branch = next.get(form.charCodeAt(at)) ?? { edge: form.slice(at), ends: true, next: new Map() };
        next.set(form.charCodeAt(at), branch);
        const { edge, ends } = branch;
        let same = 1;
        while (same < edge.length && edge.charCodeAt(same) === form.charCodeAt(at + same)) same++;
        at += same;
        if (same < edge.length) {
          branch.next = new Map([[edge.charCodeAt(same), { edge: edge.slice(same), ends, next: branch.next }]]);
          branch.edge = edge.slice(0, same);
        }
        branch.ends = at === form.length || (ends && same === edge.length);
        next = branch.next;
      }
    }
  }

  scan(text: string): Sight {
    const spans: Span[] = [];
    let tail = text.length;
    for (let at = 0; at < text.length; at++) {
      if (at + KEY <= text.length && this.#known[hashAt(text, at)] === 0) continue;
      let [next, to] = [this.#root, at];
      for (let end = at; ;) {
        if (end === text.length && next.size > 0) tail = Math.min(tail, at);
        const branch = next.get(text.charCodeAt(end));
        if (branch === undefined) break;
        // Comparing slices is a hundred times faster than startsWith, which counts where many characters are alike.
        const there = text.slice(end, end + branch.edge.length);
        end += there.length;
        if (there !== branch.edge) {
          if (end === text.length && branch.edge.slice(0, there.length) === there) tail = Math.min(tail, at);
          break;
        }
        // The longest counts, so that a secret which contains another is masked whole.
        if (branch.ends) to = end;
        next = branch.next;
      }
      if (to > at) spans.push([at, to]);
    }
    return { spans, tail };
  }
}

/** The end of a stream, not told yet: it may be the start of a form. */
export interface Held {
  readonly text: string;
  /** So many characters of its beginning belong to what was masked before. */
  readonly covered: number;
  /** Its length when it was looked at. */
  readonly seen: number;
}

export const NOTHING: Held = { text: "", covered: 0, seen: 0 };

/** Masks what these forms are, `wrapped` ones over line breaks too. */
export class FormMask {
  readonly #plain = new FormTree();
  readonly #wrapped = new FormTree();

  add(plain: readonly string[], wrapped: readonly string[]): void {
    this.#plain.add(plain);
    this.#wrapped.add(wrapped);
  }

  get isEmpty(): boolean {
    return this.#plain.longest === 0;
  }

  /** What may be told of a stream now that more of it came, and what is held from now on. */
  take(held: Held, more: string, mask: string): readonly [told: string, held: Held] {
    const text = held.text + more;
    if (held.seen > LONG && text.length < held.seen * 1.125) return ["", { ...held, text }];
    const { spans, tail } = this.#look(text, held.text.length);
    const [told, end] = masked(text, held.covered, spans, tail, mask);
    return [told, { text: text.slice(tail), covered: Math.max(0, end - tail), seen: text.length - tail }];
  }

  /** A text that is whole, or what is held of a stream that ended. */
  mask(text: string, mask: string, covered = 0): string {
    return this.isEmpty ? text : masked(text, covered, this.#look(text, 0).spans, text.length, mask)[0];
  }

  #look(text: string, heldBefore: number): Sight {
    const plain = this.#plain.scan(text);
    const joined = new Joined(text);
    if (joined.isWhole) return plain;
    const wrapped = this.#wrapped.scan(joined.text);
    const tail = joined.placeOf(wrapped.tail);
    const isSuspect =
      tail < heldBefore || joined.text.length - wrapped.tail >= SUSPECT || DIGITS.test(joined.text.slice(-16));
    // Breaks without end are not held.
    const isHeld = isSuspect && text.length - tail <= 4 * this.#wrapped.longest + LONG;
    return {
      spans: [...plain.spans, ...wrapped.spans.map(joined.spanOf)].sort(([a], [b]) => a - b),
      tail: isHeld ? Math.min(plain.tail, tail) : plain.tail,
    };
  }
}

/** A text up to its tail, with a mask for all spans that overlap, and where the last of them ends. */
function masked(
  text: string,
  covered: number,
  spans: readonly Span[],
  tail: number,
  mask: string,
): readonly [told: string, end: number] {
  let [told, end] = ["", covered];
  for (const [from, to] of spans) {
    if (from >= tail) break;
    if (from >= end) told += text.slice(end, from) + mask;
    end = Math.max(end, to);
  }
  return [told + text.slice(end, tail), end];
}

/** A text without its line breaks. */
class Joined {
  readonly text: string;
  /** For each piece behind a break: where it begins in the joined text, and how much was left out before. */
  readonly #pieces: (readonly [begin: number, left: number])[] = [];

  constructor(text: string) {
    let [joined, from, left] = ["", 0, 0];
    for (const { 0: found, index } of /[\r\n\\]/.test(text) ? text.matchAll(BREAK) : []) {
      joined += text.slice(from, index);
      from = index + found.length;
      left += found.length;
      this.#pieces.push([joined.length, left]);
    }
    this.text = joined + text.slice(from);
  }

  get isWhole(): boolean {
    return this.#pieces.length === 0;
  }

  placeOf(at: number): number {
    let [low, high] = [0, this.#pieces.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#pieces[middle]?.[0] ?? 0) <= at) low = middle + 1;
      else high = middle;
    }
    return at + (this.#pieces[low - 1]?.[1] ?? 0);
  }

  readonly spanOf = ([from, to]: Span): Span => [this.placeOf(from), this.placeOf(to - 1) + 1];
}

function hashAt(text: string, at: number): number {
  const [a, b, c, d] = [text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2), text.charCodeAt(at + 3)];
  return (a + 31 * b + 961 * c + 29_791 * d) & 0xffff;
}
