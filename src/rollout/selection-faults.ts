import { canaryFaults, hasLabels, isNamed } from "./select.ts";
import type { UpdateSpec } from "./spec.ts";
import type { RolloutNode } from "./view.ts";

export interface Selection {
  /** All that there are, and what they are of: `this cluster`, `the roster`. */
  readonly nodes: readonly RolloutNode[];
  readonly of: string;
  readonly selected: readonly RolloutNode[];
}

/**
 * Why a manifest does not mean what it says among these nodes, one text each: names, datacenters and labels that nobody has, canaries that are none of the update, bounds that
 * are above the number of nodes. Left out in silence, a slip of the pen would leave its node, or the trial on it, out.
 */
export function selectionFaults(spec: UpdateSpec, { nodes, of, selected }: Selection): readonly string[] {
  const { maxUnavailable, batchSize = 1, canary } = spec.strategy;
  const isKnown = (name: string): boolean => nodes.some((node) => isNamed(node, [name]));
  const unknown = (path: string, names: readonly string[] = []): string[] =>
    names.filter((name) => !isKnown(name)).map((name) => `no node of ${of} is “${name}”, which ${path} names`);
  const { nodeIds, datacenters, labels } = spec.selector;
  const empty = datacenters.filter((dc) => !nodes.some((node) => node.dc === dc));
  const strange = labels.filter((label) => !nodes.some((node) => hasLabels(node, [label])));
  const names = [
    ...unknown("selector.nodeIds", nodeIds),
    ...empty.map((dc) => `no node of ${of} is in “${dc}”, which selector.datacenters names`),
    ...strange.map((label) => `no node of ${of} has the label “${label}”, which selector.labels wants`),
    ...unknown("strategy.canary.nodeIds", canary?.nodeIds),
  ];
  const count = selected.length;
  if (count === 0) return names;
  return [
    ...names,
    ...canaryFaults(selected, spec, isKnown),
    ...(maxUnavailable > count ? [`maxUnavailable is ${maxUnavailable}, and ${count} nodes are meant`] : []),
    ...(batchSize > count ? [`batchSize is ${batchSize}, and ${count} nodes are meant`] : []),
  ];
}
