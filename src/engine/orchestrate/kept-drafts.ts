import type { StepDraft } from "#engine/states/planned-step.ts";

/** A planned stage, as far as its drafts rest on others. */
interface Drafted {
  readonly rests: ReadonlySet<string>;
}

/**
 * Drafts that were made when everything was checked, for the nodes whose turn comes first: nothing is rendered twice for
 * them. Others are drafted again, so that a run over a thousand nodes does not hold them all in memory.
 */
export class KeptDrafts {
  readonly #most: number;
  readonly #nodes = new Set<string>();
  readonly #kept = new Map<Drafted, Map<string, readonly StepDraft[]>>();

  /** `most`: how many nodes it keeps drafts of. */
  constructor(most: number) {
    this.#most = most;
  }

  /** What a stage rests on may be known only later: such drafts are not kept. */
  keep(stage: Drafted, node: string, drafts: readonly StepDraft[]): void {
    if (stage.rests.size > 0 || (this.#nodes.size >= this.#most && !this.#nodes.has(node))) return;
    this.#nodes.add(node);
    const nodes = this.#kept.get(stage) ?? new Map<string, readonly StepDraft[]>();
    this.#kept.set(stage, nodes.set(node, drafts));
  }

  /** Gives them away: the next one who asks gets nothing. */
  take(stage: Drafted, node: string): readonly StepDraft[] | undefined {
    const nodes = this.#kept.get(stage);
    const drafts = nodes?.get(node);
    nodes?.delete(node);
    return drafts;
  }
}
