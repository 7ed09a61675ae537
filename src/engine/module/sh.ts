import { quote } from "./quote.ts";
import { MASK, Secret } from "./secret.ts";

/** What may stand in `${…}` of an `sh` text: words are quoted, lists become several words, `Sh` is put in as it is. */
export type ShValue = string | number | Secret | Sh | readonly (string | number | Secret)[];

/**
 * A piece of POSIX sh text with typed holes. Secrets are kept apart: the text names them by a variable, their values
 * travel separately, so neither argv, nor the text, nor a log ever holds one.
 */
export class Sh {
  readonly parts: readonly (string | Secret)[];

  constructor(parts: readonly (string | Secret)[]) {
    this.parts = parts;
  }

  get isEmpty(): boolean {
    return this.parts.every((part) => typeof part === "string" && part.trim() === "");
  }

  /** The text with each secret shown as `***`. */
  get masked(): string {
    return this.parts.map((part) => (part instanceof Secret ? MASK : part)).join("");
  }

  toString(): string {
    return this.masked;
  }

  toJSON(): string {
    return this.masked;
  }

  /** The text in which `name(secret)` stands for each secret; `name` gives a quoted variable such as `"$kS_1"`. */
  render(name: (value: Secret) => string): string {
    return this.parts.map((part) => (part instanceof Secret ? name(part) : part)).join("");
  }
}

/** Builds sh text from a template: every value is quoted, so no value can become syntax. The only place that joins. */
export function sh(strings: TemplateStringsArray, ...values: readonly ShValue[]): Sh {
  const parts: (string | Secret)[] = [];
  strings.raw.forEach((text, index) => {
    // A module author writes `\$` for a shell `$` before a brace, and "\`" for a back quote; all else is as typed.
    parts.push(text.replaceAll("\\${", "${").replaceAll("\\`", "`"));
    if (index < values.length) parts.push(...place(values[index] as ShValue));
  });
  return new Sh(parts);
}

/** Text of ours that is sh already: constants in this repository only, never anything a user or a node gave. */
export function rawSh(text: string): Sh {
  return new Sh([text]);
}

/** Several texts one after the other, each on lines of its own. */
export function shLines(texts: Iterable<Sh>): Sh {
  return new Sh([...texts].flatMap((text) => [...text.parts, "\n"]));
}

function place(value: ShValue): (string | Secret)[] {
  if (value instanceof Sh) return [...value.parts];
  if (value instanceof Secret) return [value];
  if (typeof value === "string" || typeof value === "number") return [quote(String(value))];
  return value.flatMap((word, index) => (index === 0 ? place(word) : [" ", ...place(word)]));
}
