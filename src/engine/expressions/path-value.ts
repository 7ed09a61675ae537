import { suggestHint } from "#errors/suggest.ts";
import type { PathExpression } from "./ast.ts";
import type { BlockFrame, FoundValue } from "./block-frame.ts";
import { Fault } from "./fault.ts";
import { isMapValue, listNames, memberOf } from "./members.ts";
import { UnknownValue } from "./unknown.ts";

/** The value of a path in a frame. @throws Fault for a name or member that is not there, UnknownValue */
export function pathValue(path: PathExpression, frame: BlockFrame): unknown {
  const { parts, depth, data, original } = path;
  const isContext = isContextPath(path);
  const start = data ? frame.data(parts[0] ?? "") : isContext ? frame.context(depth) : lookUp(parts, frame);
  if (start === undefined) throw undefinedName(data ? `@${parts[0]}` : (parts[0] ?? original), frame.names());
  const from = isContext ? 0 : 1;
  if (from === 1 && parts.length === 1 && !frame.shadows(parts[0] ?? "")) refuseBare(parts[0] ?? "");
  let value = start.value;
  for (let index = from; index < parts.length; index++) {
    const walked = () => parts.slice(0, index).join(".") || original.split(/[./]/)[0] || "this";
    value = withKnownMembers(parts, index, () => memberOf(value, parts[index] ?? "", walked));
  }
  return value;
}

/** Whether a path begins at a block's `this`: `this.x`, `../x`. */
export function isContextPath({ depth, data, original }: PathExpression): boolean {
  return !data && (depth > 0 || /^(\.|this\b)/.test(original));
}

/** The value of a path's first name; undefined: no such name. @throws UnknownValue; Fault EXPRESSION_UNDEFINED if an unknown value is known to lack the next name */
function lookUp(parts: readonly string[], frame: BlockFrame): FoundValue | undefined {
  return withKnownMembers(parts, 0, () => frame.lookup(parts[0] ?? ""));
}

/** Runs a look-up of the part at `at`. If its value is not known yet, checks the next parts against the value's known members. */
function withKnownMembers<T>(parts: readonly string[], at: number, lookUpPart: () => T): T {
  try {
    return lookUpPart();
  } catch (error) {
    let members: unknown = error instanceof UnknownValue ? error.unknown.members : undefined;
    for (let next = at + 1; next < parts.length && isMapValue(members); next++)
      members = memberOf(members, parts[next] ?? "", () => parts.slice(0, next).join("."));
    throw error;
  }
}

/** Refuses a bare `steps` or `stages`, which would not say for which step or stage the expression waits. */
function refuseBare(name: string): void {
  if (name === "steps" || name === "stages")
    throw new Fault(`“${name}” alone is not a value`, { hint: `name one: ${name}.NAME` });
}

function undefinedName(name: string, names: readonly string[]): Fault {
  return new Fault(`“${name}” is not defined`, {
    code: "EXPRESSION_UNDEFINED",
    hint: suggestHint(name, names, listNames(names)),
  });
}
