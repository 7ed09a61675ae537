import type { Change } from "#engine/events/event.ts";
import type { RunModel } from "#engine/events/run-model.ts";
import { defined } from "#optional/defined.ts";
import { bastionActions, tallyOfNode, tallyOfRun, type Tally } from "./tally.ts";
import { withoutWave } from "./wave.ts";
import { actionsByNode, itemOfAction, itemsOf, type WorkItem } from "./work-item.ts";

/** A step of a dry run that says something, and the nodes on which it says just that. */
export interface Foreseen {
  readonly stage: string;
  readonly title: string;
  readonly module: string;
  readonly nodes: readonly string[];
  /** What would change; a content that the diff shows is not told by its hashes. */
  readonly changes: readonly Change[];
  readonly diff?: string;
  /** Why it cannot be told, or on which condition it would change. */
  readonly reason?: string;
}

/** What a dry run foresees: what would change, and what cannot be told before; in the order of the run, alike ones once. */
export interface Foresight {
  readonly changes: readonly Foreseen[];
  readonly unknown: readonly Foreseen[];
}

export function foresee(model: RunModel): Foresight {
  const actions = actionsByNode(model);
  const found = { "would-change": new Map<string, Foreseen>(), unknown: new Map<string, Foreseen>() };
  const add = (node: string, item: WorkItem): void => {
    const { outcome } = item;
    if (outcome !== "would-change" && outcome !== "unknown") return;
    const one = foreseenOf(item);
    const key = JSON.stringify(one);
    const known = found[outcome].get(key);
    found[outcome].set(key, { ...one, nodes: [...(known?.nodes ?? []), node] });
  };
  for (const action of bastionActions(model)) add("bastion", itemOfAction(action));
  for (const node of model.nodes.values())
    for (const item of itemsOf(node, actions.get(node.name) ?? [])) add(node.name, item);
  return { changes: [...found["would-change"].values()], unknown: [...found.unknown.values()] };
}

function foreseenOf({ stage: id, title, module, changes, diff, reason }: WorkItem): Omit<Foreseen, "nodes"> & {
  readonly nodes: readonly string[];
} {
  const stage = withoutWave(id);
  const told = diff === undefined ? changes : changes.filter(({ name }) => name !== "content");
  return { stage, title: title === id ? stage : title, module, nodes: [], changes: told, ...defined({ diff, reason }) };
}

/** A dry run in one line: “3 to change on 2 nodes, 38 unknown”. `nodes`: the number of nodes that would change. */
export function sumOfDryRun({ wouldChange, unknown }: Pick<Tally, "wouldChange" | "unknown">, nodes: number): string {
  const on = nodes === 0 ? "" : ` on ${nodes === 1 ? "1 node" : `${nodes} nodes`}`;
  return `${wouldChange === 0 ? "nothing" : wouldChange} to change${on}${unknown === 0 ? "" : `, ${unknown} unknown`}`;
}

/** The same line for a run's model. */
export function foreseenSum(model: RunModel): string {
  const nodes = [...model.nodes.values()].filter((node) => tallyOfNode(model, node).wouldChange > 0);
  return sumOfDryRun(tallyOfRun(model), nodes.length);
}

/** `n1, n2`; of many the first and the last: `n1…n40 (40): the same`. */
export function tellNodes(nodes: readonly string[]): string {
  if (nodes.length <= 3) return nodes.join(", ");
  return `${nodes[0]}…${nodes.at(-1)} (${nodes.length}): the same`;
}
