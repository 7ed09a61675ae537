import { Command } from "commander";
import { z } from "zod";
import { registry } from "#engine/modules/registry.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { moduleExample } from "./module-example.ts";
import { testCommand } from "./test-command.ts";
import { addProjectOption, addResultOption, type CommonFlags } from "../options.ts";
import { printRows } from "../terminal/format-result.ts";
import { formatTable } from "../terminal/format-table.ts";
import { printJson } from "../terminal/print-json.ts";

interface Argument {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly default?: unknown;
  readonly description: string;
}

type Flags = CommonFlags & { readonly output: "table" | "json" };

/** `kcore modules [NAME]`: the catalogue. */
export function modulesCommand(): Command {
  return addResultOption(addProjectOption(new Command("modules")))
    .description("The catalogue of what a step can keep in order; with a name, its arguments, refusals and an example")
    .argument("[name]", "a module, as states name it: service.running")
    .addHelpText("after", "\nExamples:\n  kcore modules\n  kcore modules file.managed\n  kcore modules -o json")
    .action((name: string | undefined, flags: Flags) => (name === undefined ? list(flags) : show(name, flags)))
    .addCommand(testCommand());
}

async function list({ output }: Flags): Promise<void> {
  const modules = await Promise.all(registry.values().map((load) => load()));
  const found = modules.map(({ name, summary }) => ({ name, summary }));
  const rows = found.map(({ name, summary }) => [name, summary]);
  printRows(found, output, ["MODULE", "WHAT IT KEEPS IN ORDER"], rows);
}

async function show(name: string, { output }: Flags): Promise<void> {
  const module = await registry.get(name)?.();
  if (!module)
    throw new KcoreError({
      code: "USAGE",
      message: `there is no module “${name}”`,
      hint: suggestHint(name, registry.keys(), "kcore modules lists them") ?? "",
    });
  const args = argumentsOf(module);
  const { refusals = [] } = module;
  const example = moduleExample(name);
  if (output === "json") {
    process.stdout.write(`${printJson({ name, summary: module.summary, args, refusals, example }, 2)}\n`);
    return;
  }
  const rows = args.map(({ name: argument, type, required, default: preset, description }) => [
    `  ${argument}`,
    type,
    required ? "required" : preset === undefined ? "" : `default ${JSON.stringify(preset)}`,
    description,
  ]);
  process.stdout.write(`${name}\n${module.summary}\n\n${formatTable(["  ARGUMENT", "TYPE", "", "MEANING"], rows)}`);
  if (refusals.length > 0) process.stdout.write(`\nRefuses with (docs/errors.md): ${refusals.join(", ")}\n`);
  if (example !== undefined) process.stdout.write(`\nExample:\n${example.replaceAll(/^/gm, "  ")}\n`);
}

interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly JsonSchema[];
  readonly items?: JsonSchema;
  readonly default?: unknown;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
}

/** What a state may give to a module, from its schema. */
function argumentsOf({ args }: ModuleDefinition): readonly Argument[] {
  const schema = z.toJSONSchema(args, { io: "input", unrepresentable: "any" }) as JsonSchema;
  const variants = schema.properties ? [schema] : (schema.anyOf ?? []);
  const found = new Map<string, Argument>();
  for (const { properties = {}, required = [] } of variants)
    for (const [name, property] of Object.entries(properties))
      found.set(name, {
        name,
        type: typeOf(property),
        required: required.includes(name),
        ...(property.default === undefined ? {} : { default: property.default }),
        description: property.description ?? "",
      });
  return [...found.values()];
}

function typeOf({ type, enum: values, const: only, anyOf, items }: JsonSchema): string {
  if (only !== undefined) return JSON.stringify(only);
  if (values) return values.map((value) => JSON.stringify(value)).join(" | ");
  if (anyOf) return [...new Set(anyOf.map(typeOf))].join(" | ");
  if (type === "array") return `list of ${items ? typeOf(items) : "anything"}`;
  if (type === "object") return "map";
  return typeof type === "string" ? type : (type?.join(" | ") ?? "any");
}
