import type { Change } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { tallyOfNode, tallyOfRun, type Tally } from "./tally.ts";
import { itemsByNode, namesOf } from "./work-item.ts";

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
  type Found = DryRunStep & { readonly nodes: string[] };
  const found = { "would-change": new Map<string, Found>(), unknown: new Map<string, Found>() };
  const all = itemsByNode(model);
  // The bastion comes first, as in the live view.
  for (const { node, items } of [...all.slice(-1), ...all.slice(0, -1)])
    for (const item of items) {
      const { outcome, changes: all, diff, reason } = item;
      if (outcome !== "would-change" && outcome !== "unknown") continue;
      const changes = diff === undefined ? all : all.filter(({ name }) => name !== "content");
      const one: Found = { ...namesOf(item), nodes: [], changes, ...omitUndefined({ diff, reason }) };
      const key = JSON.stringify(one);
      const known = found[outcome].get(key) ?? one;
      known.nodes.push(node?.name ?? "bastion");
      found[outcome].set(key, known);
    }
  return { changes: [...found["would-change"].values()], unknown: [...found.unknown.values()] };
}

/** A dry run in one line: “3 to change on 2 nodes, 38 unknown”. `nodes`: the number of nodes that would change. */
export function formatTotal({ wouldChange, unknown }: Pick<Tally, "wouldChange" | "unknown">, nodes: number): string {
  const on = nodes === 0 ? "" : ` on ${nodes === 1 ? "1 node" : `${nodes} nodes`}`;
  return `${wouldChange === 0 ? "nothing" : wouldChange} to change${on}${unknown === 0 ? "" : `, ${unknown} unknown`}`;
}

/** The same line for a run's model. */
export function dryRunTotal(model: RunModel): string {
  const nodes = [...model.nodes.values()].filter((node) => tallyOfNode(model, node).wouldChange > 0);
  return formatTotal(tallyOfRun(model), nodes.length);
}

/** `n1, n2`; of many the first and the last: `n1…n40 (40): the same`. */
export function formatNodes(nodes: readonly string[]): string {
  if (nodes.length <= 3) return nodes.join(", ");
  return `${nodes[0]}…${nodes.at(-1)} (${nodes.length}): the same`;
}
