import type { NodeEntry } from "#engine/roster/roster.ts";
import type { StepDraft } from "#engine/states/planned-step.ts";

/** What earlier stages over a node used up. */
export interface Used {
  readonly taken: Set<string>;
  readonly registered: ReadonlySet<string>;
}

interface Page {
  /** In the order in which they were taken. */
  taken: readonly string[];
  registers: readonly string[];
}

/**
 * Remembers which step ids and register names the stages of each node use, in the order in which they are first
 * drafted. A stage that is drafted again gets the same names as the first time, also in a resumed run: what a node's
 * journal says about a step is about that step.
 */
export class Ledger {
  readonly #pages = new Map<string, Page>();
  readonly #marks = new Map<string, { readonly taken: number; readonly registers: number }>();

  async draft(
    stage: string,
    { name }: NodeEntry,
    draft: (used: Used) => Promise<readonly StepDraft[]>,
  ): Promise<readonly StepDraft[]> {
    const page = this.#pages.get(name) ?? { taken: [], registers: [] };
    this.#pages.set(name, page);
    const key = JSON.stringify([stage, name]);
    const known = this.#marks.get(key);
    const mark = known ?? { taken: page.taken.length, registers: page.registers.length };
    this.#marks.set(key, mark);
    const taken = new Set(page.taken.slice(0, mark.taken));
    const drafts = await draft({ taken, registered: new Set(page.registers.slice(0, mark.registers)) });
    if (known === undefined) {
      page.taken = [...taken];
      page.registers = [...page.registers, ...drafts.flatMap(({ register }) => register ?? [])];
    }
    return drafts;
  }
}
