import type { Problem, SourcePosition } from "#errors/problem.ts";
import { Secret } from "./secret.ts";

/** base64 of `age-encryption.org/v1`, with which every age file begins (age-encryption.org/v1, “Header”). */
const AGE_V1 = "YWdlLWVuY3J5cHRpb24ub3JnL3Yx";
const ARMOR = /^-----BEGIN AGE ENCRYPTED FILE-----\r?\n([A-Za-z0-9+/=\s]*)-----END AGE ENCRYPTED FILE-----\s*$/;

/** Whether a value of a file is a text that was encrypted with age: `age:BASE64` on one line, or age's own armor. */
export function isEncrypted(text: unknown): text is string {
  return typeof text === "string" && (text.startsWith(`age:${AGE_V1}`) || ARMOR.test(text));
}

/** The bytes of an age file from a text that {@link isEncrypted} accepts; undefined for incomplete base64. */
export function encryptedBytes(text: string): Buffer | undefined {
  const base64 = (ARMOR.exec(text)?.[1] ?? text.slice("age:".length)).replaceAll(/\s/g, "");
  const isWhole = base64.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(base64);
  return isWhole ? Buffer.from(base64, "base64") : undefined;
}

/** The text of an age file in YAML: one line, so that a changed secret is one changed line. */
export function encryptedText(bytes: Uint8Array): string {
  return `age:${Buffer.from(bytes).toString("base64")}`;
}

/** A secret that is encrypted in a file of the project, and opened when its value is first needed. */
export class EncryptedValue extends Secret {
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

  /** @throws UnopenedValue before {@link open} */
  override reveal(): string {
    if (this.#opened === undefined) throw new UnopenedValue(this);
    return this.#opened.reveal();
  }
}

const known = new Map<string, EncryptedValue>();

/** The process's only {@link EncryptedValue} with this text: once opened, the value stays open. */
export function encryptedValue(text: string, at?: SourcePosition): EncryptedValue {
  const value = known.get(text) ?? new EncryptedValue(text, at);
  known.set(text, value);
  return value;
}

/**
 * Thrown where the code needs a value that is not open yet. The operator does not see it: {@link whileOpening} opens the
 * value and repeats the work.
 */
export class UnopenedValue extends Error {
  readonly value: EncryptedValue;

  constructor(value: EncryptedValue) {
    super("an encrypted value is needed");
    this.name = "UnopenedValue";
    this.value = value;
  }

  /** The problem for code that cannot open values any more, such as a step that is rendered after facts came. */
  asProblem(): Problem {
    return {
      code: "SECRET_UNREADABLE",
      message: "a sealed value is used where it cannot be opened any more",
      at: this.value.at,
      hint: "give it by a parameter of type secret, or name it in the step itself",
    };
  }
}

/** The result of `work`, which is repeated each time it needs an encrypted value that `read` has to open first. */
export async function whileOpening<T>(
  read: (reference: { readonly age: string }, at?: SourcePosition) => Promise<Secret>,
  work: () => T | Promise<T>,
): Promise<T> {
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof UnopenedValue) || error.value.isOpen) throw error;
      const { value } = error;
      value.open(await read({ age: value.text }, value.at));
    }
}

/** @throws UnopenedValue for the first value in the tree that is not open yet */
export function requireOpen(value: unknown): void {
  if (value instanceof EncryptedValue) value.reveal();
  else if (value instanceof Secret || typeof value !== "object" || value === null) return;
  else for (const inner of value instanceof Map ? value.values() : Object.values(value)) requireOpen(inner);
}
