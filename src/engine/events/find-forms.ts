/** Length of the prefix that is hashed at each place of a text: at nearly all places no form has that prefix. */
const PREFIX_LENGTH = 4;
/** A line break within digits, plain or escaped in JSON, and the next line's indent. At a text's end, half a break matches. */
const BREAK = /(?:\r?\n|(?:\\r)?\\n|(?:\r|\\(?:r\\?)?)$)[ \t]*/g;
/** A text that ends in 16 base64 characters is held even if only its last character may begin a form. */
const DIGITS = /[A-Za-z0-9+/_-]{16}$/;
/** A tail that matches this many characters of a form is held, with any characters before it. */
const SUSPECT_LENGTH = 8;
/** A longer held text is scanned again only after it grew by an eighth: otherwise each piece would cost a whole scan. */
const LONG_TEXT = 4096;

type FormSpan = readonly [from: number, to: number];

/** The forms in a text, ordered by their starts, and the place from which the text's end may be an unfinished form. */
interface ScanResult {
  readonly spans: readonly FormSpan[];
  readonly tail: number;
}

/** A branch of a radix tree; all forms below the branch share its `edge`. */
interface Branch {
  edge: string;
  /** Whether a form ends with this edge. */
  ends: boolean;
  next: Map<number, Branch>;
}

/** A radix tree of forms; `scan` visits each place of a text once, however many forms there are. */
class FormTree {
  readonly #root = new Map<number, Branch>();
  /** 1 at each {@link hashAt} of a form's first characters, so that most places of a text need one look-up. */
  readonly #known = new Uint8Array(0x1_0000);
  longest = 0;

  /** `forms`: of PREFIX_LENGTH characters at least. */
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

  scan(text: string): ScanResult {
    const spans: FormSpan[] = [];
    let tail = text.length;
    for (let at = 0; at < text.length; at++) {
      if (at + PREFIX_LENGTH <= text.length && this.#known[hashAt(text, at)] === 0) continue;
      let [next, to] = [this.#root, at];
      for (let end = at; ;) {
        if (end === text.length && next.size > 0) tail = Math.min(tail, at);
        const branch = next.get(text.charCodeAt(end));
        if (branch === undefined) break;
        // Long runs of equal characters need this speed: a comparison of slices is a hundred times faster than startsWith.
        const there = text.slice(end, end + branch.edge.length);
        end += there.length;
        if (there !== branch.edge) {
          if (end === text.length && branch.edge.slice(0, there.length) === there) tail = Math.min(tail, at);
          break;
        }
        // The longest form wins, so that a secret which contains another is masked whole.
        if (branch.ends) to = end;
        next = branch.next;
      }
      if (to > at) spans.push([at, to]);
    }
    return { spans, tail };
  }
}

/** The held end of a stream: it may be the start of a form. */
export interface Held {
  readonly text: string;
  /** Characters at the beginning of `text` that the last mask covers already. */
  readonly covered: number;
  /** Length of `text` after the last scan. */
  readonly seen: number;
}

export const NOTHING_HELD: Held = { text: "", covered: 0, seen: 0 };

/** Masks forms of secrets in texts and streams; `wrapped` forms also across line breaks. */
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

  /** Appends `more` to a stream; returns the masked part that may be passed on, and the rest to hold. */
  take(held: Held, more: string, mask: string): readonly [printed: string, held: Held] {
    const text = held.text + more;
    if (held.seen > LONG_TEXT && text.length < held.seen * 1.125) return ["", { ...held, text }];
    const { spans, tail } = this.#scan(text, held.text.length);
    const [printed, end] = masked(text, held.covered, spans, tail, mask);
    return [printed, { text: text.slice(tail), covered: Math.max(0, end - tail), seen: text.length - tail }];
  }

  /** Masks a whole text, or the held end of a stream that ended. */
  mask(text: string, mask: string, covered = 0): string {
    return this.isEmpty ? text : masked(text, covered, this.#scan(text, 0).spans, text.length, mask)[0];
  }

  #scan(text: string, heldBefore: number): ScanResult {
    const plain = this.#plain.scan(text);
    const joined = new Joined(text);
    if (joined.isWhole) return plain;
    const wrapped = this.#wrapped.scan(joined.text);
    const tail = joined.placeOf(wrapped.tail);
    const isSuspect =
      tail < heldBefore || joined.text.length - wrapped.tail >= SUSPECT_LENGTH || DIGITS.test(joined.text.slice(-16));
    // A stream of endless line breaks must not be held without limit.
    const isHeld = isSuspect && text.length - tail <= 4 * this.#wrapped.longest + LONG_TEXT;
    return {
      spans: [...plain.spans, ...wrapped.spans.map(joined.spanOf)].sort(([a], [b]) => a - b),
      tail: isHeld ? Math.min(plain.tail, tail) : plain.tail,
    };
  }
}

/** The text up to `tail`, with one mask for spans that overlap, and the end of the last masked span. */
function masked(
  text: string,
  covered: number,
  spans: readonly FormSpan[],
  tail: number,
  mask: string,
): readonly [printed: string, end: number] {
  let [printed, end] = ["", covered];
  for (const [from, to] of spans) {
    if (from >= tail) break;
    if (from >= end) printed += text.slice(end, from) + mask;
    end = Math.max(end, to);
  }
  return [printed + text.slice(end, tail), end];
}

/** A text without its line breaks, which maps places back to the original text. */
class Joined {
  readonly text: string;
  /** For each piece after a break: its start in the joined text, and the characters left out before the piece. */
  readonly #pieces: (readonly [begin: number, leftOut: number])[] = [];

  constructor(text: string) {
    let [joined, from, leftOut] = ["", 0, 0];
    for (const { 0: found, index } of /[\r\n\\]/.test(text) ? text.matchAll(BREAK) : []) {
      joined += text.slice(from, index);
      from = index + found.length;
      leftOut += found.length;
      this.#pieces.push([joined.length, leftOut]);
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

  readonly spanOf = ([from, to]: FormSpan): FormSpan => [this.placeOf(from), this.placeOf(to - 1) + 1];
}

function hashAt(text: string, at: number): number {
  const [a, b, c, d] = [text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2), text.charCodeAt(at + 3)];
  return (a + 31 * b + 961 * c + 29_791 * d) & 0xffff;
}
