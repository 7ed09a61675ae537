import type { NodeEntry } from "#engine/roster/roster.ts";
import type { StepDraft } from "#engine/states/planned-step.ts";

/** The names that earlier stages over a node use. */
export interface Used {
  readonly taken: Set<string>;
  readonly registered: ReadonlySet<string>;
}

interface Names {
  /** In the order of their use. */
  taken: readonly string[];
  registers: readonly string[];
}

/**
 * The step ids and register names that the stages of each node use, in the order of their first draft. A stage that is drafted
 * again gets the same names, also in a resumed run, so that a node's journal keeps its meaning.
 */
export class UsedNames {
  readonly #names = new Map<string, Names>();
  readonly #marks = new Map<string, { readonly taken: number; readonly registers: number }>();

  async draft(
    stage: string,
    { name }: NodeEntry,
    draft: (used: Used) => Promise<readonly StepDraft[]>,
  ): Promise<readonly StepDraft[]> {
    const names = this.#names.get(name) ?? { taken: [], registers: [] };
    this.#names.set(name, names);
    const key = JSON.stringify([stage, name]);
    const known = this.#marks.get(key);
    const mark = known ?? { taken: names.taken.length, registers: names.registers.length };
    this.#marks.set(key, mark);
    const taken = new Set(names.taken.slice(0, mark.taken));
    const drafts = await draft({ taken, registered: new Set(names.registers.slice(0, mark.registers)) });
    if (known === undefined) {
      names.taken = [...taken];
      names.registers = [...names.registers, ...drafts.flatMap(({ register }) => register ?? [])];
    }
    return drafts;
  }
}
