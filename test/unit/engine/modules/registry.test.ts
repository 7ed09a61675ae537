import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { parse } from "yaml";
import { z } from "zod";
import { registry } from "#engine/modules/registry.ts";
import { blobOf } from "#engine/step/blob.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { refusalsIn } from "#support/refusals.ts";
import { contextOf, stepOf } from "#support/steps.ts";
import { listModules, modulesFolder, registryText } from "../../../../scripts/gen-registry.ts";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const [docs = ""] = readFileSync(join(root, "docs/modules.md"), "utf8").split("\n## Platforms\n");

describe("the module registry", () => {
  it("is up to date (npm run gen:registry)", () =>
    expect(readFileSync(join(modulesFolder, "registry.ts"), "utf8")).to.equal(registryText(listModules())));

  it("lists modules in docs/modules.md in the order of their names", () => {
    const rows = [...docs.matchAll(/^\| ([a-z0-9_]+\.[a-zA-Z0-9_]+)\s*\|/gm)].map(([, name]) => name);
    expect(rows).to.deep.equal(rows.toSorted((a, b) => ((a ?? "") < (b ?? "") ? -1 : 1)));
    expect(rows).to.have.members([...registry.keys()]);
  });

  for (const { name, file } of listModules())
    describe(name, () => {
      it("has a table of cases", () =>
        expect(existsSync(join(root, "test/modules", file.replace(".ts", ".yaml")))).to.equal(true));

      it("has its name, summary and arguments in docs/modules.md", async () => {
        const module = await registry.get(name)?.();
        expect(module?.name).to.equal(name);
        const row = docs.split("\n").find((line) => line.startsWith(`| ${name} `)) ?? "";
        expect(row).to.contain(module?.summary);
        const properties = z.toJSONSchema(module?.args ?? z.never(), {
          io: "input",
          unrepresentable: "any",
        }).properties;
        for (const argument of Object.keys(properties ?? {})) expect(row).to.match(new RegExp(`\`${argument}\``));
      });

      it("has a working example at the start of its comment", async () => {
        const text = readFileSync(join(modulesFolder, file), "utf8");
        const [, commented = ""] = /\/\*\*\n \* ```yaml\n([\s\S]*?) \* ```/.exec(text) ?? [];
        const example: unknown = parse(commented.replaceAll(/^ \* ?/gm, ""));
        const [[key, args] = []] = Object.entries(example as Record<string, unknown>);
        expect(key).to.equal(name);
        const module = await registry.get(name)?.();
        const step = stepOf(
          module as ModuleDefinition,
          args,
          contextOf({ readFile: () => blobOf("a file of the project"), readFolder: () => [] }),
        );
        expect(step.always === true || Object.keys(step.want).length > 0).to.equal(true);
      });

      // The converse, that each refusal is declared, is checked by stepOf for each step of a test.
      it("declares only codes with which it can refuse", async () => {
        const possible = refusalsIn([...withFragments(join(modulesFolder, file)).values()].join("\n"));
        const module = await registry.get(name)?.();
        const refusals = module?.refusals ?? [];
        expect(refusals.filter((code) => !possible.has(code))).to.deep.equal([]);
        expect(refusals).to.deep.equal([...new Set(refusals)]);
      });
    });
});

/** The texts of a module, and of all fragments and modules that it imports. */
function withFragments(path: string, texts = new Map<string, string>()): ReadonlyMap<string, string> {
  if (texts.has(path)) return texts;
  const text = readFileSync(path, "utf8");
  texts.set(path, text);
  for (const [, imported = ""] of text.matchAll(/from "(\.[^"]*)"/g)) {
    const other = join(dirname(path), imported);
    if (/\/(step\/fragments|modules)\//.test(other)) withFragments(other, texts);
  }
  return texts;
}
