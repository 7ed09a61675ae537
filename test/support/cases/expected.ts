import { expect } from "chai";

/** A text or a list that contains these parts, or contains none of them. */
export class HasParts {
  readonly parts: readonly unknown[];
  readonly none: readonly string[];
  constructor(parts: readonly unknown[], none: readonly string[] = []) {
    this.parts = parts;
    this.none = none;
  }
}

/** A text that an expression matches. */
export class Matches {
  readonly expression: RegExp;
  constructor(expression: RegExp) {
    this.expression = expression;
  }
}

/** A text that contains these parts, in the order of their first occurrences. */
export class InOrder {
  readonly parts: readonly string[];
  constructor(parts: readonly string[]) {
    this.parts = parts;
  }
}

/** A map without other keys. */
export class ExactMap {
  readonly entries: Readonly<Record<string, unknown>>;
  constructor(entries: Readonly<Record<string, unknown>>) {
    this.entries = entries;
  }
}

/** A sh text. */
export class ShText {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** Compares a found value with a table's value. A map of a table names only some keys, unless it is an {@link ExactMap}. */
export function expectAs(found: unknown, wanted: unknown, what: string): void {
  if (wanted instanceof HasParts) {
    for (const part of wanted.parts)
      if (Array.isArray(found)) expect(found, what).to.deep.include(part);
      else expect(found, what).to.be.a("string").that.contains(part);
    for (const part of wanted.none) expect(String(found), what).not.to.contain(part);
  } else if (wanted instanceof Matches) expect(found, what).to.be.a("string").that.matches(wanted.expression);
  else if (wanted instanceof InOrder) {
    expect(found, what).to.be.a("string");
    const parts = wanted.parts.map((part) => ({ part, at: String(found).indexOf(part) }));
    expect(
      parts.filter(({ at }) => at < 0).map(({ part }) => part),
      `${what} does not hold`,
    ).to.deep.equal([]);
    const sorted = parts.toSorted((a, b) => a.at - b.at).map(({ part }) => part);
    expect(sorted, `${what}: the order`).to.deep.equal(wanted.parts);
  } else if (wanted instanceof ExactMap) {
    expect(Object.keys(found ?? {}), `${what}: its keys`).to.have.members(Object.keys(wanted.entries));
    expectAs(found, wanted.entries, what);
  } else if (Array.isArray(wanted)) {
    expect(found, what).to.be.an("array").with.lengthOf(wanted.length);
    for (const [index, item] of wanted.entries()) expectAs((found as unknown[])[index], item, `${what}: ${index}`);
  } else if (isPlain(wanted))
    for (const [key, value] of Object.entries(wanted))
      expectAs((found as Record<string, unknown> | undefined)?.[key], value, `${what}: ${key}`);
  else expect(found ?? null, what).to.deep.equal(wanted);
}

/** Whether a value is a map, and no object of a class. */
export function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
