import { Fault } from "./fault.ts";
import { type Arguments, type Helpers, isEqual } from "./helper.ts";
import { entriesOf, hasMember, isMapValue, memberOf } from "./members.ts";
import { describeValue } from "#engine/yaml/node.ts";
import { Duration, ByteSize } from "#engine/step/fields.ts";

/** Helpers for lists, maps and numbers. */
export const listHelpers: Helpers = {
  length: { usage: "list | map | text", min: 1, max: 1, run: (args) => lengthOf(args.any(0)) },
  first: { usage: "list", min: 1, max: 1, passes: true, run: (args) => itemAtEnd(args, 0) },
  last: { usage: "list", min: 1, max: 1, passes: true, run: (args) => itemAtEnd(args, -1) },
  sort: { usage: "list", min: 1, max: 1, run: (args) => sortList(args.list(0)) },
  unique: { usage: "list", min: 1, max: 1, run: (args) => unique(args.list(0)) },
  concat: { usage: "a b … (all texts, or all lists)", min: 1, run: concat },
  list: { usage: "a b …", min: 0, passes: true, run: (args) => [...args.values] },
  enumerate: { usage: "list, gives { index, value } with index from 0", min: 1, max: 1, passes: true, run: enumerate },
  keys: { usage: "map", min: 1, max: 1, run: (args) => args.map(0).map(([key]) => key) },
  values: { usage: "map", min: 1, max: 1, passes: true, run: (args) => args.map(0).map(([, value]) => value) },
  pluck: { usage: "list key", min: 2, max: 2, passes: true, run: pluck },
  where: { usage: "list key value", min: 3, max: 3, passes: true, run: where },
  add: { usage: "a b …", min: 2, run: (args) => finite(numbers(args).reduce((a, b) => a + b)) },
  sub: { usage: "a b", min: 2, max: 2, run: (args) => finite(args.number(0) - args.number(1)) },
  mul: { usage: "a b …", min: 2, run: (args) => finite(numbers(args).reduce((a, b) => a * b)) },
  div: {
    usage: "a b (rounded down)",
    min: 2,
    max: 2,
    run: (args) => finite(Math.floor(args.number(0) / args.number(1))),
  },
  mod: { usage: "a b", min: 2, max: 2, run: (args) => finite(args.number(0) % args.number(1)) },
  min: { usage: "a b …", min: 1, run: (args) => Math.min(...numbers(args)) },
  max: { usage: "a b …", min: 1, run: (args) => Math.max(...numbers(args)) },
  number: { usage: "text", min: 1, max: 1, run: toNumber },
  size: {
    usage: "text such as 10GiB, gives bytes",
    min: 1,
    max: 1,
    run: (args) => parseField(ByteSize, args, "a size such as 10GiB"),
  },
  duration: {
    usage: "text such as 5m, gives seconds",
    min: 1,
    max: 1,
    run: (args) => parseField(Duration, args, "a duration such as 5m"),
  },
};

function lengthOf(value: unknown): number {
  if (typeof value === "string") return Array.from(value).length;
  if (Array.isArray(value)) return value.length;
  if (isMapValue(value)) return entriesOf(value).length;
  throw new Fault(`length counts lists, maps and texts, not ${describeValue(value)}`, { argument: 0 });
}

function enumerate(args: Arguments): unknown {
  return args.list(0).map((value, index) => ({ index, value }));
}

function itemAtEnd(args: Arguments, index: 0 | -1): unknown {
  const list = args.list(0);
  if (list.length === 0) throw new Fault(`${args.name} of an empty list`, { argument: 0 });
  return list.at(index);
}

function sortList(list: readonly unknown[]): unknown[] {
  if (list.every((item) => typeof item === "number")) return [...list].sort((a, b) => a - b);
  if (list.every((item) => typeof item === "string")) return [...list].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
  throw new Fault("sort takes a list of texts or a list of numbers", { argument: 0 });
}

function unique(list: readonly unknown[]): unknown[] {
  return list.filter((item, index) => list.findIndex((other) => isEqual(item, other)) === index);
}

function concat(args: Arguments): unknown {
  if (args.values.every(Array.isArray)) return args.values.flat();
  return args.values.map((_, index) => args.printable(index)).join("");
}

function pluck(args: Arguments): unknown[] {
  const key = args.text(1);
  return items(args).map((item, index) => memberOf(item, key, () => `item ${index + 1}`));
}

/** The items whose `key` equals the value, or is a list that holds it. */
function where(args: Arguments): unknown[] {
  const key = args.text(1);
  const wanted = args.any(2);
  return items(args).filter((item) => {
    if (!hasMember(item, key)) return false;
    const value = memberOf(item, key, () => key);
    return Array.isArray(value) ? value.some((part) => isEqual(part, wanted)) : isEqual(value, wanted);
  });
}

/** The items of a list; of a map such as `nodes`, its values. */
function items(args: Arguments): readonly unknown[] {
  return isMapValue(args.any(0)) ? args.map(0).map(([, value]) => value) : args.list(0);
}

function numbers(args: Arguments): number[] {
  return args.values.map((_, index) => args.number(index));
}

function finite(result: number): number {
  if (Number.isFinite(result)) return result;
  throw new Fault("the result is not a number");
}

function toNumber(args: Arguments): number {
  const text = args.printable(0).trim();
  const number = text === "" ? Number.NaN : Number(text);
  if (Number.isFinite(number)) return number;
  throw new Fault("the argument of number does not read as a number", { argument: 0 });
}

function parseField(field: typeof ByteSize, args: Arguments, wanted: string): number {
  const result = field.safeParse(args.any(0));
  if (result.success) return result.data;
  throw new Fault(`the argument of ${args.name} must be ${wanted}`, { argument: 0 });
}
