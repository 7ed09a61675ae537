import { needOpen } from "#engine/step/sealed.ts";
import { hasMember } from "./members.ts";
import type { References } from "./references.ts";
import type { Scope } from "./scope.ts";

/**
 * Opens the sealed values that a late expression names before the run, since the expression cannot wait for one then. A reference to
 * a whole node, or to all nodes, opens nothing: that would be every secret of the roster.
 * @throws SealedValue for the first that is not open yet
 */
export function openReferred({ paths }: Pick<References, "paths">, scope: Scope): void {
  for (const path of paths) {
    const value = valueAt(scope, path);
    const isWhole = (path[0] === "node" && path.length === 1) || (path[0] === "nodes" && path.length <= 2);
    if (!isWhole) needOpen(value);
  }
}

function valueAt(scope: Scope, path: readonly string[]): unknown {
  let value: unknown = scope;
  for (const part of path) {
    if (!hasMember(value, part)) return undefined;
    value = value instanceof Map ? value.get(part) : (value as Record<string, unknown>)[part];
  }
  return value;
}
