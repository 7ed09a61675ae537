import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { exampleIn, type ModuleExamples } from "#cli/modules/known-modules.ts";

const root = join(import.meta.dirname, "..");

/** The part of a module's table that the lab tries. */
interface Table {
  readonly lab?: readonly {
    readonly args: ModuleExamples["tried"][number]["args"];
    readonly refusal?: { readonly args: ModuleExamples["tried"][number]["args"]; readonly code: string };
    /** The step only prepares the lab for others. */
    readonly helps?: true;
  }[];
}

/** The only tag that arguments of the lab have: a file of the tests. */
const fixture = {
  tag: "!fixture",
  resolve: (name: string) => readFileSync(join(root, "test", "fixtures", name), "utf8") as unknown as object,
};

/** By each module's name: the example that its comment opens with, and the steps of `lab` in its table but for those that help. */
export function collectExamples(): Record<string, ModuleExamples> {
  const folder = join(root, "src/engine/modules");
  return Object.fromEntries(
    readdirSync(folder).flatMap((file) => {
      const source = readFileSync(join(folder, file), "utf8");
      const [example, name] = [exampleIn(source), /^ {2}name: "([\w.]+)",$/m.exec(source)?.[1]];
      if (example === undefined || name === undefined) return [];
      return [[name, { example, tried: triedSteps(join(root, "test", "modules", file.replace(/\.ts$/, ".yaml"))) }]];
    }),
  );
}

function triedSteps(file: string): ModuleExamples["tried"] {
  if (!existsSync(file)) return [];
  const options = { merge: true, logLevel: "silent", maxAliasCount: 1000 } as const;
  const { lab = [] } = parse(readFileSync(file, "utf8"), { ...options, customTags: [fixture] }) as Table;
  return lab.flatMap(({ args, refusal, helps }) => {
    if (helps) return [];
    return [{ args }, ...(refusal ? [{ args: refusal.args, refused: refusal.code }] : [])];
  });
}
