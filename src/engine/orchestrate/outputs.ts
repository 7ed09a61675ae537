import { Unknown } from "#engine/expressions/unknown.ts";
import type { Outputs } from "./action.ts";

/** Stands for an action or stage that concerns no single node. */
const EVERYWHERE = "";

/** What finished stages gave, for expressions: `stages.NAME`. */
export class StageOutputs {
  readonly #names: ReadonlyMap<string, { readonly perNode: boolean }>;
  readonly #expected = new Map<string, Map<string, Readonly<Record<string, unknown>> | null>>();
  readonly #given = new Map<string, Map<string, Outputs | Unknown>>();

  /** `names`: every name that a stage registers, whether it gives one value for each of its nodes. */
  constructor(names: ReadonlyMap<string, { readonly perNode: boolean }>) {
    this.#names = names;
  }

  /** Tells the names that a stage will give on a node, where they are known: a path to another is wrong before the run. */
  expect(name: string, node: string | undefined, names: readonly string[] | undefined): void {
    const values = this.#expected.get(name) ?? new Map<string, Readonly<Record<string, unknown>> | null>();
    values.set(node ?? EVERYWHERE, names ? Object.fromEntries(names.map((one) => [one, null])) : null);
    this.#expected.set(name, values);
  }

  /** Keeps what a stage gave; an Unknown is kept too: its stage is over, and its value stays unknown. */
  set(name: string, node: string | undefined, value: Outputs | Unknown): void {
    const values = this.#given.get(name) ?? new Map<string, Outputs | Unknown>();
    values.set(node ?? EVERYWHERE, value);
    this.#given.set(name, values);
  }

  get(name: string, node: string | undefined): Outputs | Unknown {
    const values = this.#given.get(name);
    return (
      values?.get(node ?? EVERYWHERE) ??
      values?.get(EVERYWHERE) ??
      unknownOf(name, this.#expected.get(name)?.get(node ?? EVERYWHERE) ?? this.#expected.get(name)?.get(EVERYWHERE))
    );
  }

  /**
   * The root `stages` as a node's stage sees it: the node's own values; where there is no node, values that belong to
   * nodes come by the node's name.
   */
  scope(node?: string): Readonly<Record<string, unknown>> {
    const scope = Object.create(null) as Record<string, unknown>;
    for (const [name, { perNode }] of this.#names)
      scope[name] = perNode && node === undefined ? this.#byNode(name) : this.get(name, node);
    return scope;
  }

  #byNode(name: string): unknown {
    const values = this.#given.get(name);
    if (values === undefined) return unknownOf(name, this.#expected.get(name));
    return Object.assign(Object.create(null) as Record<string, unknown>, Object.fromEntries(values));
  }
}

function unknownOf(
  name: string,
  members?: Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown> | null,
): Unknown {
  return new Unknown(`stage ${name}`, { stages: [name] }, members ?? undefined);
}
