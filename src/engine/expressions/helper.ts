import { Fault } from "./fault.ts";
import { entriesOf, isMapValue } from "./members.ts";
import { describeValue } from "#engine/yaml/node.ts";

/** A helper's evaluated arguments, positional and named; each accessor but `any` checks the type. */
export class Arguments {
  readonly name: string;
  readonly values: readonly unknown[];
  readonly named: ReadonlyMap<string, unknown>;

  constructor(name: string, values: readonly unknown[], named: ReadonlyMap<string, unknown>) {
    this.name = name;
    this.values = values;
    this.named = named;
  }

  any(index: number): unknown {
    return this.values[index];
  }

  text(index: number): string {
    const value = this.values[index];
    return typeof value === "string" ? value : this.#refuse(index, "a text");
  }

  /** A text, or a number or boolean as it is printed. */
  printable(index: number): string {
    return scalarText(this.values[index]) ?? this.#refuse(index, "a text or a number");
  }

  number(index: number): number {
    const value = this.values[index];
    return typeof value === "number" ? value : this.#refuse(index, "a number");
  }

  /** The number of a named argument, such as `indent` in `json x indent=2`; `otherwise` if it is absent. */
  namedNumber(name: string, otherwise: number): number {
    const value = this.named.get(name);
    if (value === undefined) return otherwise;
    if (typeof value === "number") return value;
    throw new Fault(`“${name}” of ${this.name} must be a number, not ${describeValue(value)}`);
  }

  boolean(index: number): boolean {
    const value = this.values[index];
    return typeof value === "boolean" ? value : this.#refuse(index, "true or false");
  }

  list(index: number): readonly unknown[] {
    const value = this.values[index];
    return Array.isArray(value) ? (value as readonly unknown[]) : this.#refuse(index, "a list");
  }

  map(index: number): readonly [string, unknown][] {
    const value = this.values[index];
    return isMapValue(value) ? entriesOf(value) : this.#refuse(index, "a map");
  }

  #refuse(index: number, wanted: string): never {
    const which = this.values.length > 1 ? `argument ${index + 1} of ${this.name}` : `the argument of ${this.name}`;
    throw new Fault(`${which} must be ${wanted}, not ${describeValue(this.values[index])}`, { argument: index });
  }
}

/** A named function of expressions. */
export interface Helper {
  /** The arguments as documented, such as `list separator`. */
  readonly usage: string;
  readonly min: number;
  /** Absent: any number. */
  readonly max?: number;
  /** The names of arguments that the helper takes as `name=value`. */
  readonly named?: readonly string[];
  /** The helper returns arguments unchanged: a secret among them stays a Secret, the others stay plain. */
  readonly passes?: true;
  /** An argument of this value is the result, even if other arguments are unknown (Kleene's three-valued logic). */
  readonly decides?: boolean;
  readonly run: (args: Arguments) => unknown;
}

export type Helpers = Readonly<Record<string, Helper>>;

/** A text, number or boolean as text; undefined for null, a list, a map or a secret. */
export function scalarText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/** Whether two values are equal in type and content; the order of a map's keys does not count. */
export function isEqual(a: unknown, b: unknown): boolean {
  if (a === b || Object.is(a, b)) return true;
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((item, index) => isEqual(item, b[index]));
  if (!isMapValue(a) || !isMapValue(b)) return false;
  const [left, right] = [entriesOf(a), new Map(entriesOf(b))];
  return left.length === right.size && left.every(([key, value]) => right.has(key) && isEqual(value, right.get(key)));
}
