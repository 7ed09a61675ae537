/** Characters of a form by which it is looked up. */
const KEY = 4;
/** Where a line ends within digits: a break, or one in a text of JSON, and what indents the next line. */
const BREAK = /(?:\r?\n|(?:\\r)?\\n)[ \t]*/g;
/** A line that ends in so many digits may be one of several that belong together. */
const WRAPPED = /[A-Za-z0-9+/_-]{16}=*$/;
/** How much of a text's end is looked at for such lines. */
const WINDOW = 4096;

/** From where to where. */
type Span = readonly [from: number, to: number];

/** Finds texts of a list in others: each place is looked at once, however many texts there are. */
export class FormFinder {
  /** By what {@link hashAt} makes of their first characters. */
  readonly #forms = new Map<number, string[]>();
  /** Which of them there are: one look into a table for each place of a text. */
  readonly #known = new Uint8Array(0x1_0000);
  /** What is shorter than that and begins some form. */
  readonly #begins = new Set<string>();
  #longest = 0;

  /** Forms of four characters and more. */
  add(forms: readonly string[]): void {
    for (const form of forms) {
      const hash = hashAt(form, 0);
      const alike = this.#forms.get(hash) ?? [];
      if (alike.includes(form)) continue;
      this.#forms.set(hash, alike);
      this.#known[hash] = 1;
      // The longest first, so that a secret which contains another is masked whole.
      alike.push(form);
      alike.sort((a, b) => b.length - a.length);
      for (let length = 1; length < KEY; length++) this.#begins.add(form.slice(0, length));
      this.#longest = Math.max(this.#longest, form.length);
    }
  }

  get isEmpty(): boolean {
    return this.#longest === 0;
  }

  find(text: string): readonly Span[] {
    const found: Span[] = [];
    for (let at = 0; at + KEY <= text.length; at++) {
      const form = this.#at(text, at)?.find((one) => text.startsWith(one, at));
      if (form === undefined) continue;
      found.push([at, at + form.length]);
      at += form.length - 1;
    }
    return found;
  }

  #at(text: string, at: number): readonly string[] | undefined {
    const hash = hashAt(text, at);
    return this.#known[hash] === 1 ? this.#forms.get(hash) : undefined;
  }

  /** Where the end of a text begins that is the start of some form; the text's length where none is. */
  tail(text: string): number {
    for (let at = Math.max(0, text.length - this.#longest + 1); at < text.length; at++) {
      const left = text.length - at;
      if (
        left < KEY
          ? this.#begins.has(text.slice(at))
          : this.#at(text, at)?.some((form) => form.length > left && form.startsWith(text.slice(at)))
      )
        return at;
    }
    return text.length;
  }
}

/** Masks what these forms are, `wrapped` ones over line breaks too. */
export class FormMask {
  readonly #plain = new FormFinder();
  readonly #wrapped = new FormFinder();

  add(plain: readonly string[], wrapped: readonly string[]): void {
    this.#plain.add(plain);
    this.#wrapped.add(wrapped);
  }

  get isEmpty(): boolean {
    return this.#plain.isEmpty;
  }

  mask(text: string, mask: string): string {
    if (this.isEmpty) return text;
    const masked = replaced(text, this.#plain.find(text), mask);
    const joined = new Joined(masked);
    return joined.isWhole ? masked : replaced(masked, this.#wrapped.find(joined.text).map(joined.spanOf), mask);
  }

  /** Where the end of a text begins that may be the start of some form. */
  tail(text: string): number {
    const plain = this.#plain.tail(text);
    const from = Math.max(0, text.length - WINDOW);
    const window = text.slice(from);
    const lines = window.split(BREAK).slice(-3);
    if (!lines.some((line) => WRAPPED.test(line))) return plain;
    const joined = new Joined(window);
    const start = this.#wrapped.tail(joined.text);
    return start === joined.text.length ? plain : Math.min(plain, from + joined.placeOf(start));
  }
}

/** A text without its line breaks. */
class Joined {
  readonly text: string;
  /** For each piece behind a break: where it begins in the joined text, and how much was left out before. */
  readonly #pieces: (readonly [begin: number, left: number])[] = [];

  constructor(text: string) {
    let [joined, from, left] = ["", 0, 0];
    for (const { 0: found, index } of text.includes("\n") || text.includes("\\n") ? text.matchAll(BREAK) : []) {
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

function replaced(text: string, spans: readonly Span[], mask: string): string {
  let [result, from] = ["", 0];
  for (const [begin, end] of spans) {
    result += text.slice(from, begin) + mask;
    from = end;
  }
  return from === 0 ? text : result + text.slice(from);
}

function hashAt(text: string, at: number): number {
  const [a, b, c, d] = [text.charCodeAt(at), text.charCodeAt(at + 1), text.charCodeAt(at + 2), text.charCodeAt(at + 3)];
  return (a + 31 * b + 961 * c + 29_791 * d) & 0xffff;
}
