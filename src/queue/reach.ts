import type { NodeEntry } from "#engine/roster/roster.ts";

/** The nodes that a worker takes: those for which all given terms hold; none given: every node. */
export interface Reach {
  readonly dc?: string;
  /** `KEY=VALUE`, or `KEY` for any value. */
  readonly labels?: readonly string[];
  /** A jump host on the way to the node. */
  readonly jump?: string;
}

/** The terms of a reach as text, which is also the name of its queue: `dc=DC1 jump=gate`; `any` without terms. */
export function reachName({ dc, labels = [], jump }: Reach): string {
  const terms = [
    ...(dc === undefined ? [] : [`dc=${dc}`]),
    ...labels.toSorted().map((label) => `label=${label}`),
    ...(jump === undefined ? [] : [`jump=${jump}`]),
  ];
  return terms.length === 0 ? "any" : terms.join(" ");
}

export function reaches({ dc, labels = [], jump }: Reach, node: NodeEntry): boolean {
  const hasLabel = (label: string): boolean => {
    const [key = "", value] = label.split(/=(.*)/s);
    return Object.hasOwn(node.labels, key) && (value === undefined || node.labels[key] === value);
  };
  return (
    (dc === undefined || node.dc === dc) && labels.every(hasLabel) && (jump === undefined || node.jump.includes(jump))
  );
}

/** The reach with the most terms of those that include a node; of equal ones the first by name. Undefined: none. */
export function closestReach(all: readonly Reach[], node: NodeEntry): Reach | undefined {
  const terms = ({ dc, labels = [], jump }: Reach): number =>
    Number(dc !== undefined) + labels.length + Number(jump !== undefined);
  return all
    .filter((reach) => reaches(reach, node))
    .toSorted((a, b) => terms(b) - terms(a) || (reachName(a) < reachName(b) ? -1 : 1))[0];
}
