/**
 * `npm run new:module NAME`: writes a module, its table of cases and its line in docs/modules.md, and makes the registry anew. The sample in
 * test/lab/catalogue, its row under “Platforms” and its costs in docs/performance.md are the author's: tests ask for them.
 */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import type { ModuleDefinition } from "../src/engine/step/define.ts";
import { listModules, modulesFolder, namesOf, registryText, type ModuleNames } from "./gen-registry.ts";

const root = fileURLToPath(new URL("../", import.meta.url));

function moduleText({ name, symbol }: ModuleNames): string {
  return `import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { sh } from "../step/sh.ts";

/**
 * \`\`\`yaml
 * ${name}: { path: /etc/example }
 * \`\`\`
 */
export const ${symbol} = defineModule({
  name: "${name}",
  summary: "Keeps a file there.",
  args: z.strictObject({
    path: AbsolutePath.describe("The file on the node."),
  }),
  refusals: ["FILE_IN_THE_WAY", "FILE_NO_PARENT", "FILE_PARENT_UNSAFE"],
  step: ({ path }) => ({
    want: { kind: "file" },
    probe: sh\`kind_of \${path}
fact kind "$kind"\`,
    guard: sh\`guard_directory \${path}\`,
    // safe_parents refuses a folder that others can write to, and set -C (O_EXCL) follows no planted link.
    apply: sh\`safe_parents \${path}
(set -C && : >\${path})\`,
  }),
});
`;
}

const tableText = `step:
  wants the file there: { args: { path: /etc/example }, want: { kind: file } }
cases:
  converges, and changes nothing the second time:
    - { run: { path: $DIR/it's here }, ends: converges }
  leaves alone what is something else, and a folder that others can write to:
    - { sh: ln -s /nowhere link, run: { path: $DIR/link }, refused: FILE_IN_THE_WAY }
    - { sh: chmod 777 ., run: { path: $DIR/file }, refused: FILE_PARENT_UNSAFE }
`;

/** The row of docs/modules.md for a module. */
function moduleRow({ name, summary, args }: ModuleDefinition): string {
  const { properties = {}, required = [] } = z.toJSONSchema(args, { io: "input", unrepresentable: "any" });
  const words = Object.keys(properties).map((key) => (required.includes(key) ? `**\`${key}\`**` : `\`${key}\``));
  return `| ${name} | ${summary} | ${words.join(" ")} |`;
}

/** docs/modules.md with the module's row in its place among the others, in the table of arguments. */
export function withRow(page: string, name: string, row: string): string {
  const [modules = "", ...rest] = page.split(/(?=^## Platforms$)/m);
  const lines = modules.split("\n");
  const rowName = (line: string): string | undefined => /^\| ([a-z0-9_]+\.[A-Za-z0-9_]+)\s*\|/.exec(line)?.[1];
  const after = lines.findLastIndex((line) => {
    const other = rowName(line);
    return /^\| ?--/.test(line) || (other !== undefined && other < name);
  });
  return [lines.toSpliced(after + 1, 0, row).join("\n"), ...rest].join("");
}

async function main(name: string | undefined): Promise<void> {
  if (name === undefined || !/^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$/.test(name))
    throw new Error("give a name such as service.running: npm run new:module service.running");
  const names = namesOf(`${name.replaceAll(/[._]/g, "-")}.ts`);
  const file = join(modulesFolder, names.file);
  if (existsSync(file)) throw new Error(`${file} is there already`);
  writeFileSync(file, moduleText(names));
  const table = join(root, "test/modules", names.file.replace(".ts", ".yaml"));
  writeFileSync(table, tableText);
  writeFileSync(join(modulesFolder, "registry.ts"), registryText(listModules()));
  const loaded = (await import(file)) as Record<string, ModuleDefinition>;
  const made = loaded[names.symbol];
  if (made === undefined) throw new Error(`${file} exports no ${names.symbol}`);
  const docs = join(root, "docs/modules.md");
  writeFileSync(docs, withRow(readFileSync(docs, "utf8"), name, moduleRow(made)));
  for (const written of [file, table, docs]) console.log(written);
}

if (import.meta.main) await main(process.argv[2]);
