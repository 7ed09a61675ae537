import { inspect } from "node:util";

/** The text that is printed in place of a secret. */
export const MASK = "***";

const values = new Set<string>();

/**
 * The values of all secrets that this process ever made. Views, records and logs mask them (S-7). The set only grows.
 */
export function knownSecrets(): ReadonlySet<string> {
  return values;
}

/**
 * A value that must never be shown. Every conversion to text gives `***`; only `reveal()` gives the value, and its callers
 * keep the value out of views, records and logs.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
    // An encrypted value that is not open has an empty text, which would match everywhere.
    if (value !== "") values.add(value);
  }

  reveal(): string {
    return this.#value;
  }
  toString(): string {
    return MASK;
  }
  toJSON(): string {
    return MASK;
  }
  [inspect.custom](): string {
    return MASK;
  }
}

export function secret(value: string): Secret {
  return new Secret(value);
}
