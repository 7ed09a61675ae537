import { Fault } from "./fault.ts";
import { type Arguments, type Helpers, isEqual } from "./helper.ts";
import { entriesOf, isMapValue, memberOf } from "./members.ts";
import { describeValue } from "#engine/yaml/node.ts";

/** Helpers that compare and choose. */
export const logicHelpers: Helpers = {
  eq: { usage: "a b", min: 2, max: 2, run: (args) => isEqual(args.any(0), args.any(1)) },
  ne: { usage: "a b", min: 2, max: 2, run: (args) => !isEqual(args.any(0), args.any(1)) },
  lt: { usage: "a b", min: 2, max: 2, run: (args) => args.number(0) < args.number(1) },
  le: { usage: "a b", min: 2, max: 2, run: (args) => args.number(0) <= args.number(1) },
  gt: { usage: "a b", min: 2, max: 2, run: (args) => args.number(0) > args.number(1) },
  ge: { usage: "a b", min: 2, max: 2, run: (args) => args.number(0) >= args.number(1) },
  and: { usage: "a b …", min: 2, decides: false, run: (args) => booleans(args).every(Boolean) },
  or: { usage: "a b …", min: 2, decides: true, run: (args) => booleans(args).some(Boolean) },
  not: { usage: "a", min: 1, max: 1, run: (args) => !args.boolean(0) },
  has: { usage: "list value | map key", min: 2, max: 2, run: has },
  contains: { usage: "text part | list value", min: 2, max: 2, run: contains },
  startsWith: { usage: "text start", min: 2, max: 2, run: (args) => args.text(0).startsWith(args.text(1)) },
  endsWith: { usage: "text end", min: 2, max: 2, run: (args) => args.text(0).endsWith(args.text(1)) },
  if: {
    usage: "condition then else",
    min: 3,
    max: 3,
    passes: true,
    run: (args) => (isTruthy(args.any(0)) ? args.any(1) : args.any(2)),
  },
  // The interpreter passes undefined for a first argument that names nothing.
  default: {
    usage: "value otherwise",
    min: 2,
    max: 2,
    passes: true,
    run: (args) => (args.any(0) === undefined || args.any(0) === null ? args.any(1) : args.any(0)),
  },
  lookup: {
    usage: "map key | list index",
    min: 2,
    max: 2,
    passes: true,
    run: (args) => memberOf(args.any(0), args.printable(1), () => "the first argument of lookup"),
  },
};

/** Truth as in `#if`: null, false, 0, the empty text and the empty list are false. */
export function isTruthy(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

function booleans(args: Arguments): boolean[] {
  return args.values.map((_, index) => args.boolean(index));
}

function has(args: Arguments): boolean {
  const [where, what] = [args.any(0), args.any(1)];
  if (Array.isArray(where)) return where.some((item) => isEqual(item, what));
  if (isMapValue(where)) return entriesOf(where).some(([key]) => key === args.printable(1));
  const kinds = args.name === "contains" ? "a text, a list or a map" : "a list or a map";
  throw new Fault(`${args.name} looks into ${kinds}, not ${describeValue(where)}`, {
    argument: 0,
    hint: typeof where === "string" ? "contains looks into a text" : undefined,
  });
}

function contains(args: Arguments): boolean {
  return typeof args.any(0) === "string" ? args.text(0).includes(args.text(1)) : has(args);
}
