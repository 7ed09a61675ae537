import { nextStamp, witness, zero, type Stamp } from "#crdt/hlc.ts";
import { mergeKindOf } from "#controller/cluster/registers.ts";
import { compareRegisters } from "#crdt/merge-kind.ts";
import type { Register } from "#crdt/register.ts";

/** A register with its value, which is parsed once. */
export interface Held {
  readonly register: Register;
  readonly value: unknown;
}

/** What one origin wrote above a seq, as far as it was not written over. */
export interface Page {
  readonly origin: string;
  readonly above: number;
  readonly upto: number;
  readonly held: readonly Held[];
}

const nothing = { origins: [], seqs: [] };

/** What a controller holds durably: registers that are merged as the product merges them, and a version vector over their origins. */
export class Registers {
  readonly #held = new Map<string, Held>();
  /** Values by what they are (`update/NAME/WHAT`), then by the rest of the key. */
  readonly #sections = new Map<string, Map<string, unknown>>();
  readonly #vector = new Map<string, number>();
  readonly #origin: string;
  #clock: Stamp = zero;
  #changes = 0;
  /** Told of each key that has another value now. */
  onChanged: (key: string) => void = () => undefined;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Counts what changed. */
  get version(): number {
    return this.#changes;
  }

  get(key: string): unknown {
    return this.#held.get(key)?.value;
  }

  /** All below `update/NAME/WHAT`, by the rest of the key: a live view. */
  section(prefix: string): ReadonlyMap<string, unknown> {
    const known = this.#sections.get(prefix);
    if (known) return known;
    const empty = new Map<string, unknown>();
    this.#sections.set(prefix, empty);
    return empty;
  }

  #set(key: string, held: Held): void {
    this.#held.set(key, held);
    const at = key.indexOf("/", key.indexOf("/", key.indexOf("/") + 1) + 1);
    if (at >= 0) (this.section(key.slice(0, at)) as Map<string, unknown>).set(key.slice(at + 1), held.value);
  }

  /** One transaction, durable as a whole. */
  write(changes: readonly (readonly [string, unknown])[], wall: number): Page {
    const above = this.#vector.get(this.#origin) ?? 0;
    this.#clock = nextStamp(this.#clock, wall);
    const stamp = { ...this.#clock, o: this.#origin, s: above + 1, x: nothing };
    const held = changes.map(([key, value]) => ({ register: { key, text: JSON.stringify(value), ...stamp }, value }));
    const page = { origin: this.#origin, above, upto: above + 1, held };
    this.merge(page);
    return page;
  }

  /** The vector moves only by a page without a gap before it; the values are taken in any case. */
  merge({ origin, above, upto, held }: Page): void {
    for (const { register, value } of held) {
      this.#clock = witness(this.#clock, register);
      const { key } = register;
      const present = this.#held.get(key);
      if (present && compareRegisters(mergeKindOf(key), register, present.register) <= 0) continue;
      this.#set(key, { register, value });
      this.#changes++;
      this.onChanged(key);
    }
    const seen = this.#vector.get(origin) ?? 0;
    if (above <= seen && upto > seen) this.#vector.set(origin, upto);
  }

  get vector(): ReadonlyMap<string, number> {
    return this.#vector;
  }

  /** What a peer with this vector has not seen, a page for each origin. */
  since(vector: ReadonlyMap<string, number>): readonly Page[] {
    const pages: Page[] = [];
    for (const [origin, upto] of this.#vector) {
      const above = vector.get(origin) ?? 0;
      if (above >= upto) continue;
      const held = [...this.#held.values()].filter(({ register: { o, s } }) => o === origin && s > above && s <= upto);
      pages.push({ origin, above, upto, held });
    }
    return pages;
  }

  text(): string {
    const all = [...this.#held.values()].map(({ register: { key, text, o, s } }) => `${key} ${o} ${s} ${text}`);
    return all.toSorted().join("\n");
  }
}
