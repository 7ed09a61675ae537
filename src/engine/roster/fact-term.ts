import { factValues, type FactValue } from "#engine/facts/paths.ts";
import type { NodeFacts } from "#engine/facts/shape.ts";
import { matchesGlob } from "./patterns.ts";
import type { FactOperator, FactTerm } from "./target-syntax.ts";

/**
 * Whether a fact term is true of a node that told these facts. Of a list each item is compared: one that fits is enough, for
 * `!=` none may be equal. A fact without a comparison is true unless it is null, false, 0, the empty text or an empty list.
 */
export function holdsFor({ name, compare }: FactTerm, facts: NodeFacts): boolean {
  const values = factValues(facts, name);
  if (compare === undefined) return values.some(Boolean);
  const { operator, value } = compare;
  if (operator === "=") return values.some((found) => matchesGlob(value, String(found)));
  if (operator === "!=") return !values.some((found) => matchesGlob(value, String(found)));
  return values.some((found) => isInOrder(found, operator, value));
}

/** Numbers, and versions part by part: 12.9 < 12.10. Of `6.1.0-18-amd64` the dotted numbers at its beginning count. */
function isInOrder(found: FactValue, operator: Exclude<FactOperator, "=" | "!=">, value: string): boolean {
  const [version] = /^\d+(\.\d+)*/.exec(String(found)) ?? [];
  if (version === undefined) return false;
  const order = compareVersions(version, value);
  if (order === 0) return operator.endsWith("=");
  return operator.startsWith(">") ? order > 0 : order < 0;
}

function compareVersions(a: string, b: string): number {
  const [left, right] = [a.split(".").map(Number), b.split(".").map(Number)];
  for (let at = 0; at < Math.max(left.length, right.length); at++) {
    const apart = (left[at] ?? 0) - (right[at] ?? 0);
    if (apart !== 0) return apart;
  }
  return 0;
}
