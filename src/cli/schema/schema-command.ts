import { Argument, Command } from "commander";
import { usageError } from "#errors/problem.ts";
import { addProjectOption, type CommonFlags } from "../options.ts";
import { writeAsked, writeAskedInto } from "../project/write-asked.ts";
import { printJson } from "../terminal/print-json.ts";
import { jsonSchemaOf, schemaKinds, type SchemaKind } from "./schemas.ts";

interface Flags extends CommonFlags {
  readonly out?: string;
}

/** `kcore schema [KIND]`: JSON Schema for editors. */
export function schemaCommand(): Command {
  return addProjectOption(new Command("schema"))
    .description(
      "JSON Schema of the files that you write, with which editors complete and check them (docs/checking.md)",
    )
    .addArgument(
      new Argument("[kind]", "the kind of file; all of them, into a folder, unless given").choices(schemaKinds),
    )
    .option("--out <path>", "write it to this file; without a kind, all of them to this folder, as KIND.schema.json")
    .addHelpText(
      "after",
      `
Examples:
  kcore schema state
  kcore schema roster --out roster.schema.json
  kcore schema --out .vscode/kcore`,
    )
    .action(run);
}

async function run(kind: SchemaKind | undefined, { out }: Flags): Promise<void> {
  if (kind === undefined) {
    if (out === undefined)
      throw usageError(
        "name a schema, or the folder for all of them",
        `kcore schema ${schemaKinds.join("|")}, or kcore schema --out FOLDER`,
      );
    const files = schemaKinds.map(async (one) => [`${one}.schema.json`, await schemaText(one)] as const);
    const paths = await writeAskedInto(out, await Promise.all(files));
    process.stdout.write(`${paths.join("\n")}\n`);
    return;
  }
  const text = await schemaText(kind);
  if (out === undefined) process.stdout.write(text);
  else await writeAsked(out, text);
}

async function schemaText(kind: SchemaKind): Promise<string> {
  return `${printJson(await jsonSchemaOf(kind), 2)}\n`;
}
