import { Blob } from "./blob.ts";
import { quote } from "#base/quote.ts";
import { MASK, Secret } from "./secret.ts";

/** The values for `${…}` of an `sh` text: words are quoted, lists become several words, `Sh` is inserted unchanged. */
export type ShValue = ShWord | Sh | readonly ShWord[];
/** A value that becomes one quoted word. */
export type ShWord = string | number | Secret | Blob;

/** Fills the holes of a text when a program is compiled; `secret` and `blob` return quoted sh words. */
export interface ShNames {
  readonly secret: (value: Secret) => string;
  readonly blob: (blob: Blob) => string;
  /** Replaces a quoted value; by default the value stays. */
  readonly word?: (quoted: string) => string;
}

/**
 * A piece of POSIX sh text with typed holes. The text only names secrets and blobs, and their bytes are sent apart, so no
 * argv, text or log ever holds them.
 */
export class Sh {
  readonly parts: readonly ShPart[];

  constructor(parts: readonly ShPart[]) {
    this.parts = parts;
  }

  /** The text for display: secrets as `***`, blobs by the start of their hash. */
  get masked(): string {
    return this.render({
      secret: () => MASK,
      blob: ({ sensitive, sha256 }) => `BLOB-${sensitive ? MASK : sha256.slice(0, 12)}`,
    });
  }

  get blobs(): readonly Blob[] {
    return this.parts.filter((part) => part instanceof Blob);
  }

  /** The pieces of the text between its holes. */
  get literals(): readonly string[] {
    return this.parts.filter((part) => typeof part === "string");
  }

  get secrets(): readonly Secret[] {
    return this.parts.filter((part) => part instanceof Secret);
  }

  toString(): string {
    return this.masked;
  }

  toJSON(): string {
    return this.masked;
  }

  render({ secret, blob, word = asItIs }: ShNames): string {
    let text = "";
    for (const part of this.parts)
      if (typeof part === "string") text += part;
      // A value right after a letter or digit completes an identifier such as `found_1`, so `word` must not replace it.
      else if (part instanceof Word) text += /\w$/.test(text) ? part.quoted : word(part.quoted);
      else text += part instanceof Secret ? secret(part) : blob(part);
    return text;
  }
}

/** A literal piece, or the value of a hole. */
type ShPart = string | Word | Secret | Blob;

/** A quoted value. */
class Word {
  readonly quoted: string;

  constructor(quoted: string) {
    this.quoted = quoted;
  }
}

function asItIs(quoted: string): string {
  return quoted;
}

/** The texts of each template between its holes, computed once for each template in the sources. */
const templateTexts = new WeakMap<TemplateStringsArray, readonly string[]>();

/** Builds sh text from a template: every value is quoted, so no value can become syntax. No other function joins text and values. */
export function sh(strings: TemplateStringsArray, ...values: readonly ShValue[]): Sh {
  const texts = templateTexts.get(strings) ?? strings.raw.map(asTyped);
  templateTexts.set(strings, texts);
  const parts: ShPart[] = [];
  for (const [index, text] of texts.entries()) {
    parts.push(text);
    if (index < values.length) parts.push(...partsOf(values[index] as ShValue));
  }
  return new Sh(parts);
}

/** The text as typed, with its back slashes, but `\${` as `${` and an escaped back quote without its back slash. */
function asTyped(text: string): string {
  return text.replaceAll("\\${", "${").replaceAll("\\`", "`");
}

/** An unquoted text of sh: a constant of this repository or the code of an operator's module, never a value. */
export function rawSh(text: string): Sh {
  return new Sh([text]);
}

/** Several texts one after the other, each ended by a line break. */
export function shLines(texts: Iterable<Sh>): Sh {
  return new Sh([...texts].flatMap((text) => [...text.parts, "\n"]));
}

function partsOf(value: ShValue): ShPart[] {
  if (value instanceof Sh) return [...value.parts];
  if (value instanceof Secret || value instanceof Blob) return [value];
  if (typeof value === "string" || typeof value === "number") return [new Word(quote(String(value)))];
  return value.flatMap((word, index) => (index === 0 ? partsOf(word) : [" ", ...partsOf(word)]));
}
