/** `npm run new:module NAME`: writes a module, its test and its line in docs/modules.md, and makes the registry anew. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ModuleDefinition } from "../src/engine/step/define.ts";
import { listModules, modulesFolder, namesOf, registryText, type ModuleNames } from "./gen-registry.ts";
import { moduleRow } from "./module-row.ts";

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
    // The folder is looked at, and the file is made with O_EXCL: nobody's link is followed on the way.
    apply: sh\`safe_parents \${path}
(set -C && : >\${path})\`,
  }),
});
`;
}

function testText({ name, file, symbol }: ModuleNames): string {
  return `import { chmodSync, symlinkSync } from "node:fs";
import { expect } from "chai";
import { ${symbol} } from "#engine/modules/${file}";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { runStepOn, shells, stepOf } from "#support/steps.ts";

describe("${name}", () => {
  it("wants the file there", () => {
    expect(stepOf(${symbol}, { path: "/etc/example" }).want).to.deep.equal({ kind: "file" });
  });

  for (const shell of shells)
    describe(\`on \${shell}\`, () => {
      let folder: TempDir;
      beforeEach(async () => {
        folder = await makeTempDir("module");
      });
      afterEach(() => folder.remove());

      it("converges, and changes nothing the second time", async () => {
        const step = stepOf(${symbol}, { path: \`\${folder.path}/it's here\` });
        expect((await runStepOn(shell, step)).outcome).to.equal("changed");
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });

      it("leaves alone what is something else, and a folder that others can write to", async () => {
        symlinkSync("/nowhere", \`\${folder.path}/link\`);
        const link = await runStepOn(shell, stepOf(${symbol}, { path: \`\${folder.path}/link\` }));
        expect(link.problem?.code).to.equal("FILE_IN_THE_WAY");
        chmodSync(folder.path, 0o777);
        const unsafe = await runStepOn(shell, stepOf(${symbol}, { path: \`\${folder.path}/file\` }));
        expect(unsafe.problem?.code).to.equal("FILE_PARENT_UNSAFE");
      });
    });
});
`;
}

/** The page with the module's row in its place among the others. */
export function withRow(page: string, name: string, row: string): string {
  const lines = page.split("\n");
  const rowName = (line: string): string | undefined => /^\| ([a-z0-9_]+\.[A-Za-z0-9_]+)\s*\|/.exec(line)?.[1];
  const after = lines.findLastIndex((line) => {
    const other = rowName(line);
    return /^\| ?--/.test(line) || (other !== undefined && other < name);
  });
  return lines.toSpliced(after + 1, 0, row).join("\n");
}

async function main(name: string | undefined): Promise<void> {
  if (name === undefined || !/^[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*$/.test(name))
    throw new Error("give a name such as service.running: npm run new:module service.running");
  const names = namesOf(`${name.replaceAll(/[._]/g, "-")}.ts`);
  const file = join(modulesFolder, names.file);
  if (existsSync(file)) throw new Error(`${file} is there already`);
  writeFileSync(file, moduleText(names));
  const test = join(root, "test/unit/engine/modules", names.file.replace(".ts", ".test.ts"));
  writeFileSync(test, testText(names));
  writeFileSync(join(modulesFolder, "registry.ts"), registryText(listModules()));
  const loaded = (await import(file)) as Record<string, ModuleDefinition>;
  const made = loaded[names.symbol];
  if (made === undefined) throw new Error(`${file} exports no ${names.symbol}`);
  const docs = join(root, "docs/modules.md");
  writeFileSync(docs, withRow(readFileSync(docs, "utf8"), name, moduleRow(made)));
  for (const written of [file, test, docs]) console.log(written);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv[2]);
