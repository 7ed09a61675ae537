import type { NodeView } from "#api/schemas.ts";
import { usageError } from "#errors/problem.ts";

/** Flags that choose among nodes. */
export interface SelectorFlags {
  readonly selector?: readonly string[];
  readonly dc?: readonly string[];
}

type Selected = Pick<NodeView, "labels" | "dc">;
type Test = (labels: Readonly<Record<string, string>>) => boolean;

/**
 * The nodes that fit all of `-l` (`k=v`, `k!=v`, `k`, `!k`; several by commas or repeated) and one of `--dc`.
 * @throws KcoreError USAGE
 */
export function selectNodes<Node extends Selected>(
  nodes: readonly Node[],
  { selector = [], dc = [] }: SelectorFlags,
): readonly Node[] {
  const tests = selector.flatMap((text) => text.split(",")).map(testOf);
  return nodes.filter((node) => tests.every((test) => test(node.labels)) && (dc.length === 0 || dc.includes(node.dc)));
}

function testOf(term: string): Test {
  const [, not, key = "", operator, value = ""] =
    /^\s*(!)?([A-Za-z0-9][A-Za-z0-9._/-]*)\s*(?:(==?|!=)\s*([^\s=!]*))?\s*$/.exec(term) ?? [];
  if (key === "" || (not !== undefined && operator !== undefined))
    throw usageError(`“${term}” is no label selector`, "key=value, key!=value, key or !key; several with commas");
  if (operator === undefined) return (labels) => Object.hasOwn(labels, key) === (not === undefined);
  const isWanted = operator !== "!=";
  return (labels) => ((Object.hasOwn(labels, key) ? labels[key] : undefined) === value) === isWanted;
}
