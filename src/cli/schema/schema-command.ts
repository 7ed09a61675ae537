import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Argument, Command } from "commander";
import { KcoreError } from "#errors/problem.ts";
import { addProjectOption, type CommonFlags } from "../options.ts";
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
      new Argument("[kind]", "what kind of file; all of them, into a folder, unless given").choices(schemaKinds),
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
      throw new KcoreError({
        code: "USAGE",
        message: "which schema is wanted, or where all of them go, is missing",
        hint: `kcore schema ${schemaKinds.join("|")}, or kcore schema --out FOLDER`,
      });
    await writing(out, async () => {
      await mkdir(out, { recursive: true });
      for (const one of schemaKinds) await writeFile(join(out, `${one}.schema.json`), await textOf(one));
    });
    process.stdout.write(`${schemaKinds.map((one) => join(out, `${one}.schema.json`)).join("\n")}\n`);
    return;
  }
  const text = await textOf(kind);
  if (out === undefined) process.stdout.write(text);
  else await writing(out, () => writeFile(out, text));
}

async function textOf(kind: SchemaKind): Promise<string> {
  return `${printJson(await jsonSchemaOf(kind), 2)}\n`;
}

async function writing(path: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const { code = "", message } = error as NodeJS.ErrnoException;
    if (code === "") throw error;
    throw new KcoreError({ code: "USAGE", message: `${path} cannot be written: ${message}` }, { cause: error });
  }
}
