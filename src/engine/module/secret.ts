import { inspect } from "node:util";

/** What a secret shows wherever it is printed. */
export const MASK = "***";

/**
 * A value that must never be shown. Every way of turning it into text gives `***`; only `reveal()` gives the value,
 * and only what sends it to the node over the channel may call that.
 */
export class Secret {
  readonly #value: string;

  constructor(value: string) {
    this.#value = value;
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

/** Marks a value as secret; see {@link Secret}. */
export function secret(value: string): Secret {
  return new Secret(value);
}
