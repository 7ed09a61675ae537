import { isStamp } from "./hlc.ts";
import type { Register } from "./register.ts";
import type { CausalContext } from "./version-vector.ts";

/** `[key, text, ms, c, index of the origin, seq, index of the context]` */
export type WireRegister = readonly [string, string | null, number, number, number, number, number];

/** Registers as plain JSON, for the wire, the journal and the snapshot. Origins and contexts are listed once and named by index. */
export interface Page {
  readonly origins: readonly string[];
  /** Each a flat list of pairs: index of the origin, seq. */
  readonly contexts: readonly (readonly number[])[];
  readonly registers: readonly WireRegister[];
}

/** The error of a page with a wrong form or content: its sender is broken, or speaks another protocol. */
export class MalformedPage extends Error {
  override readonly name = "MalformedPage";
}

export function encodePage(registers: Iterable<Register>): Page {
  const origins = new SharedList<string>();
  const contexts = new SharedList<CausalContext>();
  const rows = Array.from(registers, ({ key, text, ms, c, o, s, x }): WireRegister => [
    key,
    text,
    ms,
    c,
    origins.indexOf(o),
    s,
    contexts.indexOf(x),
  ]);
  const flat = contexts.items.map(({ origins: names, seqs }) =>
    names.flatMap((name, index) => [origins.indexOf(name), seqs[index] ?? 0]),
  );
  return { origins: origins.items, contexts: flat, registers: rows };
}

/** A list of different items, each added at the first request for its index. */
class SharedList<T> {
  readonly items: T[] = [];
  readonly #indexes = new Map<T, number>();

  indexOf(item: T): number {
    let index = this.#indexes.get(item);
    if (index === undefined) {
      index = this.items.push(item) - 1;
      this.#indexes.set(item, index);
    }
    return index;
  }
}

/** The most origins, and the most contexts, that a reader keeps for later pages. */
const mostShared = 4096;

/** Reads pages from untrusted JSON. Equal origins and contexts become one object across pages, so 100,000 registers share a few objects. */
export class PageReader {
  readonly #origins = new Map<string, string>();
  readonly #contexts = new Map<string, CausalContext>();

  /** The page's registers. @throws MalformedPage */
  read(page: unknown): Register[] {
    const { origins, contexts, registers } = shapeOf(page);
    const names = origins.map((name) => this.#originOf(name));
    const seen = contexts.map((flat) => this.#contextOf(flat, names));
    return registers.map((row) => registerOf(row, names, seen));
  }

  #originOf(name: unknown): string {
    if (typeof name !== "string" || name === "" || name.length > 128) throw new MalformedPage("an origin is no name");
    const known = this.#origins.get(name);
    if (known !== undefined) return known;
    // Names are shared before they are checked, so their number is bounded here.
    if (this.#origins.size >= mostShared) this.#origins.clear();
    this.#origins.set(name, name);
    return name;
  }

  #contextOf(flat: unknown, names: readonly string[]): CausalContext {
    const id = Array.isArray(flat) ? contextKey(flat, names) : undefined;
    if (id === undefined) throw new MalformedPage("a context is no list of pairs");
    const known = this.#contexts.get(id);
    if (known) return known;
    const pairs = flat as readonly number[];
    const context: CausalContext = {
      origins: pairs.filter((_, index) => index % 2 === 0).map((origin) => names[origin] as string),
      seqs: pairs.filter((_, index) => index % 2 === 1),
    };
    if (this.#contexts.size >= mostShared) this.#contexts.clear();
    this.#contexts.set(id, context);
    return context;
  }
}

function shapeOf(page: unknown): {
  readonly origins: readonly unknown[];
  readonly contexts: readonly unknown[];
  readonly registers: readonly unknown[];
} {
  const { origins, contexts, registers } = (page ?? {}) as Record<keyof Page, unknown>;
  if (!Array.isArray(origins) || !Array.isArray(contexts) || !Array.isArray(registers))
    throw new MalformedPage("not a page");
  return { origins, contexts, registers };
}

function contextKey(flat: readonly unknown[], names: readonly string[]): string | undefined {
  let text = "";
  for (let index = 0; index < flat.length; index += 2) {
    const name = itemAt(names, flat[index]);
    if (name === undefined || !isSeq(flat[index + 1])) return undefined;
    text += `${name} ${flat[index + 1] as number}\n`;
  }
  return text;
}

function registerOf(row: unknown, names: readonly string[], contexts: readonly CausalContext[]): Register {
  if (!Array.isArray(row)) throw new MalformedPage("a register is no list");
  const [key, text, ms, c, origin, s, context] = row as readonly unknown[];
  const o = itemAt(names, origin);
  const x = itemAt(contexts, context);
  if (typeof key !== "string" || key === "") throw new MalformedPage("a key is no text");
  if (typeof text !== "string" && text !== null) throw new MalformedPage("a value is no text");
  if (!isStamp(ms, c) || !isSeq(s) || o === undefined || x === undefined)
    throw new MalformedPage(`the stamp or dot of ${key.slice(0, 80)} is malformed`);
  return { key, text, ms: ms as number, c: c as number, o, s: s as number, x };
}

/** The item at a numeric index only: “length” and “__proto__” would be properties. */
function itemAt<T>(list: readonly T[], index: unknown): T | undefined {
  return typeof index === "number" ? list[index] : undefined;
}

function isSeq(value: unknown): boolean {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

export const emptyPage: Page = { origins: [], contexts: [], registers: [] };
