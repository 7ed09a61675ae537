import type { Change, Outcome } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { tallyOfNode, tallyOfRun, type Tally } from "./tally.ts";
import { groupAlike, itemsByNode, itemNames } from "./work-item.ts";

/** A step of a dry run that would change or is unknown, and the nodes with just this result. */
export interface DryRunStep {
  readonly stage: string;
  readonly title: string;
  readonly module: string;
  readonly nodes: readonly string[];
  /** The changes; a content whose diff is shown has no hashes here. */
  readonly changes: readonly Change[];
  readonly diff?: string;
  /** The reason why the step is unknown, or the condition of its change. */
  readonly reason?: string;
}

/** The plan of a dry run: changes and unknown steps in the order of the run, equal ones of several nodes once. */
export interface DryRunPlan {
  readonly changes: readonly DryRunStep[];
  readonly unknown: readonly DryRunStep[];
}

export function planOf(model: RunModel): DryRunPlan {
  const byNode = itemsByNode(model);
  // The bastion comes first, as in the live view.
  const groups = [...byNode.slice(-1), ...byNode.slice(0, -1)];
  const stepsOf = (wanted: Outcome): readonly DryRunStep[] =>
    groupAlike(groups, (item) => {
      const { outcome, changes: all, diff, reason } = item;
      if (outcome !== wanted) return undefined;
      const changes = diff === undefined ? all : all.filter(({ name }) => name !== "content");
      return { ...itemNames(item), changes, ...omitUndefined({ diff, reason }) };
    });
  return { changes: stepsOf("would-change"), unknown: stepsOf("unknown") };
}

/** A dry run in one line: “3 to change on 2 nodes, 38 unknown”. `nodes`: the number of nodes that would change. */
export function formatTotal({ wouldChange, unknown }: Pick<Tally, "wouldChange" | "unknown">, nodes: number): string {
  const on = nodes === 0 ? "" : ` on ${nodes === 1 ? "1 node" : `${nodes} nodes`}`;
  return `${wouldChange === 0 ? "nothing" : wouldChange} to change${on}${unknown === 0 ? "" : `, ${unknown} unknown`}`;
}

/** A dry run's model as the line of `formatTotal`. */
export function dryRunTotal(model: RunModel): string {
  const nodes = [...model.nodes.values()].filter((node) => tallyOfNode(model, node).wouldChange > 0);
  return formatTotal(tallyOfRun(model), nodes.length);
}

/** `n1, n2, n3`; from four nodes on the first and the last: `n1…n40 (40): the same`. */
export function formatNodes(nodes: readonly string[]): string {
  if (nodes.length <= 3) return nodes.join(", ");
  return `${nodes[0]}…${nodes.at(-1)} (${nodes.length}): the same`;
}
