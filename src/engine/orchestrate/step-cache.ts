import type { UnresolvedStep } from "#engine/states/planned-step.ts";

interface ExpandedStage {
  /** Names of earlier stages whose outputs the stage uses. */
  readonly dependencies: ReadonlySet<string>;
}

/**
 * Keeps the steps that the check before the run expanded, for the first nodes alone. The steps of the other nodes are
 * expanded again, so that a run over a thousand nodes does not hold all steps in memory.
 */
export class StepCache {
  readonly #maxNodes: number;
  readonly #nodes = new Set<string>();
  readonly #steps = new Map<ExpandedStage, Map<string, readonly UnresolvedStep[]>>();

  /** `maxNodes`: the number of nodes whose steps are kept. */
  constructor(maxNodes: number) {
    this.#maxNodes = maxNodes;
  }

  /** Keeps a node's steps, unless outputs of other stages may still change them. */
  keep(stage: ExpandedStage, node: string, steps: readonly UnresolvedStep[]): void {
    if (stage.dependencies.size > 0 || (this.#nodes.size >= this.#maxNodes && !this.#nodes.has(node))) return;
    this.#nodes.add(node);
    const nodes = this.#steps.get(stage) ?? new Map<string, readonly UnresolvedStep[]>();
    this.#steps.set(stage, nodes.set(node, steps));
  }

  /** Removes and returns a node's steps; undefined if they were not kept. */
  take(stage: ExpandedStage, node: string): readonly UnresolvedStep[] | undefined {
    const nodes = this.#steps.get(stage);
    const steps = nodes?.get(node);
    nodes?.delete(node);
    return steps;
  }
}
