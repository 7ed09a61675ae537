import type { UpdateSpec } from "./spec.ts";
import type { RolloutNode } from "./rollout-input.ts";

/**
 * The nodes of a selector, in the order of their names. Every given filter must hold, `allNodes` or not: one of the
 * datacenters and of the ids, and all labels. A selector without filters selects nothing.
 */
export function matchSelector(nodes: Iterable<RolloutNode>, selector: UpdateSpec["selector"]): readonly RolloutNode[] {
  const { allNodes, nodeIds, labels, datacenters, controllersOnly } = selector;
  const hasCriteria = allNodes || controllersOnly || nodeIds.length + labels.length + datacenters.length > 0;
  if (!hasCriteria) return [];
  return [...nodes].filter((node) => isSelected(node, selector)).toSorted(byName);
}

function isSelected(node: RolloutNode, selector: UpdateSpec["selector"]): boolean {
  const { labels, controllersOnly } = selector;
  return (!controllersOnly || node.isController) && mayBeSelected(node, selector) && hasLabels(node, labels);
}

/**
 * Whether a selector may select a node, by the node's names and datacenter alone: only the cluster knows labels and
 * roles.
 */
export function mayBeSelected(
  node: Pick<RolloutNode, "id" | "hostname" | "dc">,
  { nodeIds, datacenters }: Pick<UpdateSpec["selector"], "nodeIds" | "datacenters">,
): boolean {
  const isInDatacenter = datacenters.length === 0 || datacenters.includes(node.dc);
  return isInDatacenter && (nodeIds.length === 0 || isNamed(node, nodeIds));
}

export function isNamed({ id, hostname }: Pick<RolloutNode, "id" | "hostname">, names: readonly string[]): boolean {
  return names.includes(id) || names.includes(hostname);
}

function hasLabels({ labels, dc }: RolloutNode, wanted: readonly string[]): boolean {
  return wanted.every((text) => {
    const at = text.indexOf("=");
    const [key, value] = [text.slice(0, at), text.slice(at + 1)];
    return (labels[key] ?? (key === "dc" ? dc : undefined)) === value;
  });
}

export function byName(a: RolloutNode, b: RolloutNode): number {
  return a.hostname === b.hostname ? compare(a.id, b.id) : compare(a.hostname, b.hostname);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** The groups of a rollout, one after the other; the first `canaries` of them are canaries. */
export interface Waves {
  readonly waves: readonly (readonly string[])[];
  readonly canaries: number;
}

/**
 * Divides nodes into waves: canaries, workers, controllers (one at a time), nodes that are not ready, and last the owner, because the
 * operator's commands are connected to it. With `per-dc` this order holds within each datacenter, and the owner's datacenter is the last.
 */
export function divideIntoWaves(selected: readonly RolloutNode[], spec: UpdateSpec, owner: string): Waves {
  const { type, maxUnavailable, batchSize = maxUnavailable } = spec.strategy;
  if (type === "one-at-a-time") return { waves: groupNodes(selected, 1, owner), canaries: 0 };
  if (type === "batch") return { waves: groupNodes(selected, batchSize, owner), canaries: 0 };
  if (type === "per-dc") {
    const dcs = [...Map.groupBy(selected, ({ dc }) => dc)].toSorted(([a], [b]) => compare(a, b));
    // The owner is the last node, so its datacenter must be the last, too.
    const own = dcs.findIndex(([, nodes]) => nodes.some(({ id }) => id === owner));
    if (own >= 0) dcs.push(...dcs.splice(own, 1));
    return { waves: dcs.flatMap(([, nodes]) => groupNodes(nodes, batchSize, owner)), canaries: 0 };
  }
  const chosen = canariesOf(selected, spec, owner);
  const first = groupNodes(chosen, batchSize, owner);
  const rest = groupNodes(
    selected.filter((node) => !chosen.includes(node)),
    batchSize,
    owner,
  );
  return { waves: [...first, ...rest], canaries: first.length };
}

function canariesOf(selected: readonly RolloutNode[], spec: UpdateSpec, owner: string): readonly RolloutNode[] {
  const chosen = wantedCanaries(selected, spec);
  // Never empty, or all other waves would begin without a trial.
  return chosen.length > 0 ? chosen : inOrder(selected, owner).slice(0, 1);
}

function wantedCanaries(selected: readonly RolloutNode[], { strategy }: UpdateSpec): readonly RolloutNode[] {
  const { nodeIds = [], labels = [] } = strategy.canary ?? {};
  if (nodeIds.length + labels.length === 0) return [];
  return selected.filter((node) => (nodeIds.length === 0 || isNamed(node, nodeIds)) && hasLabels(node, labels));
}

/** The faults of a manifest's canaries: named nodes outside of the selection, or labels that no candidate has. Unknown names are left to the caller. */
function canaryFaults(spec: UpdateSpec, { nodes, selected }: NodeSelection): readonly string[] {
  const { nodeIds = [], labels = [] } = spec.strategy.canary ?? {};
  const isAmong = (some: readonly RolloutNode[], name: string): boolean => some.some((node) => isNamed(node, [name]));
  const stray = nodeIds.filter((name) => !isAmong(selected, name));
  if (stray.length > 0)
    return stray
      .filter((name) => isAmong(nodes, name))
      .map(
        (name) =>
          `strategy.canary.nodeIds names “${name}”, which the selector leaves out: select it, too, or name another canary`,
      );
  if (labels.length === 0 || wantedCanaries(selected, spec).length > 0) return [];
  const whose = nodeIds.length > 0 ? "that strategy.canary.nodeIds names" : "that the selector means";
  return [`no node ${whose} has what strategy.canary.labels wants: ${labels.join(", ")}`];
}

function groupNodes(nodes: readonly RolloutNode[], size: number, owner: string): readonly (readonly string[])[] {
  const waves: string[][] = [];
  const ordered = inOrder(nodes, owner);
  let isAlone = false;
  for (const node of ordered) {
    const last = waves.at(-1);
    const isJoined = last !== undefined && last.length < size && !node.isController && !isAlone;
    if (isJoined) last.push(node.id);
    else waves.push([node.id]);
    isAlone = node.isController;
  }
  return waves;
}

function inOrder(nodes: readonly RolloutNode[], owner: string): readonly RolloutNode[] {
  const rank = ({ id, isController, isReady }: RolloutNode): number =>
    (isController && id === owner ? 4 : 0) + (isReady ? 0 : 2) + (isController ? 1 : 0);
  return nodes.toSorted((a, b) => rank(a) - rank(b) || byName(a, b));
}

/** The nodes that a manifest selects, among all nodes. */
export interface NodeSelection {
  /** All nodes of the cluster or the roster. */
  readonly nodes: readonly RolloutNode[];
  /** The cluster or the roster, as error texts name it. */
  readonly of: string;
  readonly selected: readonly RolloutNode[];
}

/**
 * The faults of a manifest for these nodes, one text each: names, datacenters and labels that no node has, canaries outside of the update, and
 * bounds above the number of nodes.
 */
export function selectionFaults(spec: UpdateSpec, selection: NodeSelection): readonly string[] {
  const { nodes, of, selected } = selection;
  const { maxUnavailable, batchSize = 1, canary } = spec.strategy;
  const isKnown = (name: string): boolean => nodes.some((node) => isNamed(node, [name]));
  const unknown = (path: string, names: readonly string[] = []): string[] =>
    names.filter((name) => !isKnown(name)).map((name) => `no node of ${of} is “${name}”, which ${path} names`);
  const { nodeIds, datacenters, labels } = spec.selector;
  const empty = datacenters.filter((dc) => !nodes.some((node) => node.dc === dc));
  const unknownLabels = labels.filter((label) => !nodes.some((node) => hasLabels(node, [label])));
  const names = [
    ...unknown("selector.nodeIds", nodeIds),
    ...empty.map((dc) => `no node of ${of} is in “${dc}”, which selector.datacenters names`),
    ...unknownLabels.map((label) => `no node of ${of} has the label “${label}”, which selector.labels wants`),
    ...unknown("strategy.canary.nodeIds", canary?.nodeIds),
  ];
  const count = selected.length;
  if (count === 0) return names;
  return [
    ...names,
    ...canaryFaults(spec, selection),
    ...(maxUnavailable > count ? [`maxUnavailable is ${maxUnavailable}, and ${count} nodes are meant`] : []),
    ...(batchSize > count ? [`batchSize is ${batchSize}, and ${count} nodes are meant`] : []),
  ];
}
