import { hostPort } from "#engine/step/host-port.ts";
import { quote } from "#base/quote.ts";
import { Fault } from "./fault.ts";
import { type Arguments, type Helpers, scalarText } from "./helper.ts";
import { entriesOf, isMapValue } from "./members.ts";
import { describeValue } from "#engine/yaml/node.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";

/** Helpers that make texts of values. */
export const textHelpers: Helpers = {
  join: { usage: "list separator", min: 1, max: 2, run: join },
  split: { usage: "text separator", min: 2, max: 2, run: split },
  lower: { usage: "text", min: 1, max: 1, run: (args) => args.text(0).toLowerCase() },
  upper: { usage: "text", min: 1, max: 1, run: (args) => args.text(0).toUpperCase() },
  trim: { usage: "text", min: 1, max: 1, run: (args) => args.text(0).trim() },
  replace: {
    usage: "text part by",
    min: 3,
    max: 3,
    run: (args) => args.text(0).split(separatorIn(args)).join(args.printable(2)),
  },
  indent: { usage: "text spaces", min: 2, max: 2, run: indent },
  json: { usage: "value indent=N", min: 1, max: 1, named: ["indent"], run: json },
  yaml: { usage: "value", min: 1, max: 1, run: (args) => printYaml(plain(args.any(0))).trimEnd() },
  shell: { usage: "text … | list", min: 1, run: shell },
  hostPort: { usage: "address port", min: 2, max: 2, run: (args) => hostPort(args.text(0), args.printable(1)) },
};

function join(args: Arguments): string {
  const separator = args.values.length > 1 ? args.text(1) : ",";
  const texts = args.list(0).map((item, index) => {
    const text = scalarText(item);
    if (text === undefined)
      throw new Fault(`item ${index + 1} of what join gets is ${describeValue(item)}`, {
        argument: 0,
        hint: "pluck takes one key of each map",
      });
    return text;
  });
  return texts.join(separator);
}

function split(args: Arguments): string[] {
  const text = args.text(0);
  return text === "" ? [] : text.split(separatorIn(args)).map((part) => part.trim());
}

/** The second argument, at which the first is split. */
function separatorIn(args: Arguments): string {
  const text = args.text(1);
  if (text === "") throw new Fault(`argument 2 of ${args.name} must not be empty`, { argument: 1 });
  return text;
}

function indent(args: Arguments): string {
  const spaces = args.number(1);
  if (!Number.isInteger(spaces) || spaces < 0 || spaces > 100)
    throw new Fault("indent takes 0 to 100 spaces", { argument: 1 });
  return args.text(0).replaceAll(/^(?=.)/gm, " ".repeat(spaces));
}

function json(args: Arguments): string {
  return JSON.stringify(plain(args.any(0)), undefined, args.namedNumber("indent", 0));
}

/** The value with all Maps as plain objects, for JSON and YAML. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  return isMapValue(value) ? Object.fromEntries(entriesOf(value).map(([key, item]) => [key, plain(item)])) : value;
}

function shell(args: Arguments): string {
  const words = args.values.length === 1 && Array.isArray(args.any(0)) ? args.list(0) : args.values;
  return words.map((word) => quoteValue(args.name, word)).join(" ");
}

function quoteValue(name: string, word: unknown): string {
  const text = scalarText(word);
  if (text === undefined) throw new Fault(`${name} quotes texts and numbers, not ${describeValue(word)}`);
  if (text.includes("\0")) throw new Fault("a shell word cannot hold a NUL byte");
  return quote(text);
}
