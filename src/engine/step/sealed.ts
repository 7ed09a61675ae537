import type { Problem, SourcePosition } from "#errors/problem.ts";
import { Secret } from "./secret.ts";

/** base64 of `age-encryption.org/v1`, with which every age file begins (age-encryption.org/v1, “Header”). */
const AGE_V1 = "YWdlLWVuY3J5cHRpb24ub3JnL3Yx";
const ARMOR = /^-----BEGIN AGE ENCRYPTED FILE-----\r?\n([A-Za-z0-9+/=\s]*)-----END AGE ENCRYPTED FILE-----\s*$/;

/** Whether a value of a file is a text that was encrypted with age: `age:BASE64` on one line, or age's own armor. */
export function isSealed(text: unknown): text is string {
  return typeof text === "string" && (text.startsWith(`age:${AGE_V1}`) || ARMOR.test(text));
}

/** The bytes of an age file from a text that {@link isSealed} accepts; undefined for incomplete base64. */
export function bytesOfSealed(text: string): Buffer | undefined {
  const base64 = (ARMOR.exec(text)?.[1] ?? text.slice("age:".length)).replaceAll(/\s/g, "");
  const isWhole = base64.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(base64);
  return isWhole ? Buffer.from(base64, "base64") : undefined;
}

/** The text of an age file in YAML: one line, so that a changed secret is one changed line. */
export function sealedText(bytes: Uint8Array): string {
  return `age:${Buffer.from(bytes).toString("base64")}`;
}

/** A secret that is encrypted in a file of the project, and opened when its value is first needed. */
export class Sealed extends Secret {
  readonly text: string;
  readonly at: SourcePosition | undefined;
  #opened: Secret | undefined;

  constructor(text: string, at?: SourcePosition) {
    super("");
    this.text = text;
    this.at = at;
  }

  get isOpen(): boolean {
    return this.#opened !== undefined;
  }

  open(value: Secret): void {
    this.#opened = value;
  }

  /** @throws SealedValue before {@link open} */
  override reveal(): string {
    if (this.#opened === undefined) throw new SealedValue(this);
    return this.#opened.reveal();
  }
}

const known = new Map<string, Sealed>();

/** The process's only {@link Sealed} with this text: once opened, the value stays open. */
export function sealed(text: string, at?: SourcePosition): Sealed {
  const value = known.get(text) ?? new Sealed(text, at);
  known.set(text, value);
  return value;
}

/**
 * Thrown where the code needs a value that is not open yet. The operator does not see it: {@link whileOpening} opens the
 * value and repeats the work.
 */
export class SealedValue extends Error {
  readonly sealed: Sealed;

  constructor(value: Sealed) {
    super("a sealed value is needed");
    this.name = "SealedValue";
    this.sealed = value;
  }

  /** The problem for code that cannot open values any more, such as a step that is rendered after facts came. */
  asProblem(): Problem {
    return {
      code: "SECRET_UNREADABLE",
      message: "a sealed value is used where it cannot be opened any more",
      at: this.sealed.at,
      hint: "give it by a parameter of type secret, or name it in the step itself",
    };
  }
}

/** The result of `work`, which is repeated each time it needs a sealed value that `read` has to open first. */
export async function whileOpening<T>(
  read: (reference: { readonly age: string }, at?: SourcePosition) => Promise<Secret>,
  work: () => T | Promise<T>,
): Promise<T> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof SealedValue) || error.sealed.isOpen) throw error;
      const { sealed: value } = error;
      value.open(await read({ age: value.text }, value.at));
    }
}

/** @throws SealedValue for the first value in the tree that is not open yet */
export function needOpen(value: unknown): void {
  if (value instanceof Sealed) value.reveal();
  else if (value instanceof Secret || typeof value !== "object" || value === null) return;
  else for (const inner of value instanceof Map ? value.values() : Object.values(value)) needOpen(inner);
}
