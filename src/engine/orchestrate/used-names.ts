import type { NodeEntry } from "#engine/roster/roster.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";

/** The names that earlier stages over a node use. */
export interface EarlierNames {
  readonly taken: Set<string>;
  readonly registered: ReadonlySet<string>;
}

interface NamesInUse {
  /** In the order of use. */
  taken: readonly string[];
  registers: readonly string[];
}

/**
 * The step ids and register names that the stages of each node use, in the order of their first expansion. A stage that is
 * expanded again gets the same names, also in a resumed run, so that a node's journal keeps its meaning.
 */
export class UsedNames {
  readonly #names = new Map<string, NamesInUse>();
  readonly #marks = new Map<string, { readonly taken: number; readonly registers: number }>();

  /** Expands a stage's steps for a node, with the names of the stages before it. */
  async expand(
    stage: string,
    { name }: NodeEntry,
    expand: (earlier: EarlierNames) => Promise<readonly UnresolvedStep[]>,
  ): Promise<readonly UnresolvedStep[]> {
    const names = this.#names.get(name) ?? { taken: [], registers: [] };
    this.#names.set(name, names);
    const key = JSON.stringify([stage, name]);
    const known = this.#marks.get(key);
    const mark = known ?? { taken: names.taken.length, registers: names.registers.length };
    this.#marks.set(key, mark);
    const taken = new Set(names.taken.slice(0, mark.taken));
    const steps = await expand({ taken, registered: new Set(names.registers.slice(0, mark.registers)) });
    if (known === undefined) {
      names.taken = [...taken];
      names.registers = [...names.registers, ...steps.flatMap(({ register }) => register ?? [])];
    }
    return steps;
  }
}
