import { actionNames, findAction } from "#actions/registry.ts";
import { cleanText } from "#engine/events/clean.ts";
import { asFlow } from "#engine/roster/flow-yaml.ts";
import { type KcoreError, usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { listArguments, type Argument } from "./arguments.ts";
import { collectedExamples, type KnownModules } from "./known-modules.ts";
import { searchModules } from "./search.ts";
import { formatTable } from "../terminal/format-table.ts";
import { printResult } from "../terminal/format-result.ts";

/** Prints one module, with its arguments as a tree, its refusals and an example; or one action. @throws KcoreError USAGE */
export async function showModule(known: KnownModules, name: string, output: "table" | "json"): Promise<void> {
  const module = await known.load(name);
  if (!module) return showAction(known, name, output);
  const args = listArguments(module);
  const { summary, alsoKnownAs = [] } = module;
  const refusals = [...(module.refusals ?? [])].sort();
  const example = known.example(name);
  const parts = [
    `${name}\n${summary}\n\n${tableOf(args)}`,
    refusals.length > 0 && `\nRefuses with (docs/errors.md): ${refusals.join(", ")}\n`,
    alsoKnownAs.length > 0 && `\nElsewhere: ${alsoKnownAs.join(", ")}\n`,
    example !== undefined && `\nExample:\n${example.replaceAll(/^/gm, "  ")}\n`,
  ];
  // The text of a project's own module may hold any characters.
  const draw = (): string => cleanText(parts.filter((part) => part !== false).join(""));
  printResult({ name, summary, alsoKnownAs, args, refusals, example }, output, draw);
}

/** Prints an action, which a stage carries out on the bastion. */
async function showAction(known: KnownModules, name: string, output: "table" | "json"): Promise<void> {
  const action = await findAction(name);
  if (!action) throw await unknownModule(known, name);
  const args = listArguments(action);
  const { summary } = action;
  const how = `An action, done on this machine by a stage of an orchestration: run: ${name} (docs/orchestrations.md)`;
  printResult({ name, summary, run: true, args }, output, () => `${name}\n${summary}\n${how}\n\n${tableOf(args)}`);
}

function tableOf(args: readonly Argument[]): string {
  const rows = args.flatMap((argument) => rowsOf(argument, 1));
  return formatTable(["  ARGUMENT", "TYPE", "", "MEANING"], rows);
}

/** The row of an argument; for a map, rows of examples and fields follow. */
function rowsOf({ name, type, required, description, ...rest }: Argument, depth: number): readonly string[][] {
  const need = required ? "required" : rest.default === undefined ? "" : `default ${JSON.stringify(rest.default)}`;
  const { examples = [], arguments: fields = [] } = rest;
  return [
    // A long list of values in the column TYPE would push all meanings out of sight.
    type.length > 40
      ? [`${"  ".repeat(depth)}${name}`, "one of", need, `${description} ${type}`]
      : [`${"  ".repeat(depth)}${name}`, type, need, description],
    ...examples.map((example) => ["", "", "", `e.g. ${asFlow(example)}`]),
    ...fields.flatMap((field) => rowsOf(field, depth + 1)),
  ];
}

/** The error for a name that no module has. */
export async function unknownModule(known: KnownModules, name: string): Promise<KcoreError> {
  const hint = await unknownNameHint(known, name);
  return usageError(`there is no module “${name}”`, hint);
}

/** The hint for an unknown name: the module that other tools call so, else similar names. */
async function unknownNameHint(known: KnownModules, name: string): Promise<string> {
  const modules = await known.all();
  const [first] = searchModules(modules, [name]).filter(({ found }) => found.startsWith("known as"));
  if (first) return `here it is “${first.name}”; kcore modules --search ${name} finds what else there is`;
  return suggestHint(name, [...known.names, ...actionNames], "kcore modules lists them") ?? "";
}

interface Example {
  readonly args: unknown;
  readonly refused?: string;
}

/** Prints the known example steps of one module, ready for a state. @throws KcoreError USAGE */
export async function showExamples(known: KnownModules, name: string, output: "table" | "json"): Promise<void> {
  if (actionNames.includes(name))
    throw usageError(
      `${name} is an action of orchestrations; --examples are of modules`,
      `kcore modules ${name} has its arguments, docs/orchestrations.md a stage with it`,
    );
  if ((await known.load(name)) === undefined) throw await unknownModule(known, name);
  const own = known.example(name);
  if (own === undefined) throw usageError(`${name} has no example`, `kcore modules ${name}`);
  const [first] = Object.values(plainOf(parseSource(name, own)) as Record<string, unknown>);
  const all: readonly Example[] = [{ args: first }, ...(collectedExamples(name)?.tried ?? [])];
  const texts = all.map(({ args, refused }, index) => {
    const text = index === 0 ? own : printYaml({ [name]: args }).trimEnd();
    return refused === undefined ? text : `# refused with ${refused}\n${text}`;
  });
  printResult(all, output, () => cleanText(`${texts.join("\n\n")}\n`));
}
