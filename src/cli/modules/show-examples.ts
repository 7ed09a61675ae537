import { actionNames } from "#actions/registry.ts";
import { usageError } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { toStdout } from "../terminal/say.ts";
import type { KnownModules } from "./known-modules.ts";
import { collectedExamples } from "./module-example.ts";
import { unknownModule } from "./show-module.ts";
import { printResult } from "../terminal/format-result.ts";

interface Example {
  readonly args: unknown;
  readonly refused?: string;
}

/** Prints the steps that are known of one module, ready for a state. @throws KcoreError USAGE */
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
  if (output === "json") {
    printResult(all, "json");
    return;
  }
  const texts = all.map(({ args, refused }, index) => {
    const text = index === 0 ? own : printYaml({ [name]: args }).trimEnd();
    return refused === undefined ? text : `# refused with ${refused}\n${text}`;
  });
  toStdout(cleanText(`${texts.join("\n\n")}\n`));
}
