import { hasMember, isMapValue, entriesOf, memberOf } from "./members.ts";
import { Unknown, UnknownValue } from "./unknown.ts";
import type { Scope } from "./scope.ts";

/** The value of an existing name, which may be null or undefined. */
export interface FoundValue {
  readonly value: unknown;
}

/**
 * Resolves names: in each block, innermost first, its parameters and then the members of its `this`; last, the scope.
 * So `node` can be used inside `#each`, unless an item has a `node` of its own.
 */
export class BlockFrame {
  readonly #scope: Scope;
  readonly #parent: BlockFrame | undefined;
  readonly #context: FoundValue | undefined;
  readonly #names: ReadonlyMap<string, unknown>;
  readonly #data: Readonly<Record<string, unknown>>;

  private constructor(
    scope: Scope,
    parent: BlockFrame | undefined,
    context: FoundValue | undefined,
    names: ReadonlyMap<string, unknown>,
    data: Readonly<Record<string, unknown>>,
  ) {
    this.#scope = scope;
    this.#parent = parent;
    this.#context = context;
    this.#names = names;
    this.#data = data;
  }

  static top(scope: Scope): BlockFrame {
    return new BlockFrame(scope, undefined, undefined, new Map(), {});
  }

  /** The frame of a block in this one: `context` is its `this`, `data` has its `@` names, `names` and `values` its parameters. */
  inside(
    context: unknown,
    data: Readonly<Record<string, unknown>>,
    names: readonly string[] = [],
    values: readonly unknown[] = [],
  ): BlockFrame {
    const named = new Map(names.map((name, index) => [name, values[index]] as const));
    return new BlockFrame(this.#scope, this, { value: context }, named, data);
  }

  with(names: Readonly<Record<string, unknown>>): BlockFrame {
    return new BlockFrame(
      this.#scope,
      this.#parent,
      this.#context,
      new Map([...this.#names, ...Object.entries(names)]),
      this.#data,
    );
  }

  /** The value of `this`, or for a depth, of `this` that many blocks further out (`../`); at the top, the scope. */
  context(depth: number): FoundValue {
    if (depth > 0 && this.#parent !== undefined) return this.#parent.context(depth - 1);
    return this.#context ?? { value: this.#scope };
  }

  /** The value of `@index`, `@key`, `@first` or `@last` in the nearest `#each`, or of `@root`; undefined for another name, and outside `#each`. */
  data(name: string): FoundValue | undefined {
    if (name === "root") return { value: this.#scope };
    if (Object.hasOwn(this.#data, name)) return { value: this.#data[name] };
    return this.#parent?.data(name);
  }

  /** The value of a name; undefined if neither a block nor the scope has it. @throws UnknownValue */
  lookup(name: string): FoundValue | undefined {
    const own = this.#own(name) ?? this.#parent?.lookup(name);
    if (own !== undefined || this.#parent !== undefined) return own;
    if (!hasMember(this.#scope, name)) return undefined;
    const value = this.#scope[name];
    if (value instanceof Unknown) throw new UnknownValue(value);
    return { value };
  }

  has(name: string): boolean {
    return this.#own(name) !== undefined || (this.#parent?.has(name) ?? hasMember(this.#scope, name));
  }

  /** Whether a block, not the scope, defines this name. */
  shadows(name: string): boolean {
    return this.#own(name) !== undefined || (this.#parent?.shadows(name) ?? false);
  }

  /** Every name that can be used here, for suggestions. */
  names(): string[] {
    const own = [...this.#names.keys()];
    if (this.#context !== undefined && isMapValue(this.#context.value))
      own.push(...entriesOf(this.#context.value).map(([key]) => key));
    return [...new Set([...own, ...(this.#parent?.names() ?? Object.keys(this.#scope))])];
  }

  #own(name: string): FoundValue | undefined {
    if (this.#names.has(name)) return { value: this.#names.get(name) };
    const context = this.#context?.value;
    return context !== undefined && isMapValue(context) && hasMember(context, name)
      ? { value: memberOf(context, name, () => "this") }
      : undefined;
  }
}
