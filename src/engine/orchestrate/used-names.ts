import type { NodeEntry } from "#engine/roster/roster.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";

/** The names that earlier stages over a node use. */
export interface EarlierNames {
  /** Step ids; the expansion adds the ids that it uses. */
  readonly usedIds: Set<string>;
  readonly registered: ReadonlySet<string>;
}

interface NamesInUse {
  /** Step ids, in the order of use. */
  ids: readonly string[];
  /** Register names, in the order of use. */
  registers: readonly string[];
}

/**
 * The step ids and register names that the stages of each node use, in the order of their first expansion. A stage that is
 * expanded again gets the same names, also in a resumed run, so that a node's journal keeps its meaning.
 */
export class UsedNames {
  readonly #names = new Map<string, NamesInUse>();
  readonly #marks = new Map<string, { readonly ids: number; readonly registers: number }>();

  /** Expands a stage's steps for a node, with the names of the stages before it. */
  async expand(
    stage: string,
    { name }: NodeEntry,
    expand: (earlier: EarlierNames) => Promise<readonly UnresolvedStep[]>,
  ): Promise<readonly UnresolvedStep[]> {
    const names = this.#names.get(name) ?? { ids: [], registers: [] };
    this.#names.set(name, names);
    const key = JSON.stringify([stage, name]);
    const known = this.#marks.get(key);
    const mark = known ?? { ids: names.ids.length, registers: names.registers.length };
    this.#marks.set(key, mark);
    const usedIds = new Set(names.ids.slice(0, mark.ids));
    const steps = await expand({ usedIds, registered: new Set(names.registers.slice(0, mark.registers)) });
    if (known === undefined) {
      names.ids = [...usedIds];
      names.registers = [...names.registers, ...steps.flatMap(({ register }) => register ?? [])];
    }
    return steps;
  }
}
