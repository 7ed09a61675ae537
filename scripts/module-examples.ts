import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { exampleIn, type ModuleExamples } from "../src/cli/modules/module-example.ts";
import { readTable } from "../test/support/cases/table.ts";

const root = join(import.meta.dirname, "..");

/** For each module by name: the example that its comment opens with, and the steps of `lab` in its table. */
export function collectExamples(): Record<string, ModuleExamples> {
  const folder = join(root, "src/engine/modules");
  return Object.fromEntries(
    readdirSync(folder).flatMap((file) => {
      const source = readFileSync(join(folder, file), "utf8");
      const [example, name] = [exampleIn(source), /^ {2}name: "([\w.]+)",$/m.exec(source)?.[1]];
      if (example === undefined || name === undefined) return [];
      return [[name, { example, tried: triedSteps(join(root, "test/modules", file.replace(/\.ts$/, ".yaml"))) }]];
    }),
  );
}

/** Those that only prepare the lab for others are no examples. */
function triedSteps(table: string): ModuleExamples["tried"] {
  if (!existsSync(table)) return [];
  return readTable(table).lab.flatMap(({ args, refusal, helps }) => {
    if (helps) return [];
    return [{ args }, ...(refusal ? [{ args: refusal.args, refused: refusal.code }] : [])];
  });
}
