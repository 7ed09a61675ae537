import type { Roster } from "#engine/roster/roster.ts";
import { matchTargets } from "#engine/roster/targets.ts";

/** The nodes to which `--limit` narrows a run, and the work that it takes out. */
export class NodeLimit {
  readonly #kept: ReadonlySet<string>;
  /** The nodes that the run would take otherwise. */
  readonly nodes = new Set<string>();
  /** By registered name, the ids of stages without a node that is left; a stage may have nodes in another wave. */
  readonly stages = new Map<string, string>();

  /** `text`: a target expression. @throws KcoreError TARGET_EMPTY … */
  constructor(text: string, roster: Roster) {
    this.#kept = new Set(matchTargets(text, roster).map(({ name }) => name));
  }

  /** The nodes that the run may take; the others are noted. */
  within(nodes: readonly string[]): readonly string[] {
    for (const node of nodes) if (!this.#kept.has(node)) this.nodes.add(node);
    return nodes.filter((node) => this.#kept.has(node));
  }
}
