import { Command, Option } from "commander";
import { cleanText } from "#engine/events/clean.ts";
import { addRunOptions, requestOf, startRun, type RunFlags } from "../watch/start-run.ts";
import { tellWait } from "./tell-wait.ts";
import { requireTarget } from "./exec-command.ts";
import { printJson } from "../terminal/print-json.ts";

interface FactsFlags extends RunFlags {
  readonly output: "table" | "json";
}

/** `kcore facts --on TARGET`. */
export function factsCommand(): Command {
  const command = new Command("facts").description(
    "Gather what nodes say about themselves: the names that expressions see under facts",
  );
  addRunOptions(command, { full: false })
    .addOption(new Option("-o, --output <format>", "how to print").choices(["table", "json"]).default("table"))
    .addHelpText("after", "\nExamples:\n  kcore facts --on n1\n  kcore facts --on '*' -o json | jq '.[].os'")
    .action(facts);
  return command;
}

async function facts(flags: FactsFlags): Promise<void> {
  requireTarget(flags, "facts");
  const { exitCode, model } = await startRun(flags, requestOf(flags, { kind: "facts" }), {
    output: "quiet",
    onEvent: tellWait,
  });
  process.exitCode = exitCode;
  const nodes = [...model.nodes.values()];
  if (flags.output === "json") {
    const found = nodes.map(({ name, outcome = "interrupted", facts: gathered = {}, problem }) => [
      name,
      outcome === "done" ? gathered : { outcome, ...(problem ? { problem } : {}) },
    ]);
    process.stdout.write(`${printJson(Object.fromEntries(found), 2)}\n`);
    return;
  }
  for (const { name, outcome, facts: gathered = {}, problem } of nodes) {
    process.stdout.write(`${name}${outcome === "done" ? "" : `  ${problem?.message ?? outcome ?? ""}`}\n`);
    for (const [path, value] of flatten(gathered, "")) process.stdout.write(`  ${cleanText(`${path}: ${value}`)}\n`);
  }
}

function flatten(value: unknown, path: string): readonly (readonly [string, string])[] {
  if (typeof value !== "object" || value === null) return [[path, String(value)]];
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return [[path, value.join(", ")]];
  return Object.entries(value).flatMap(([key, item]) => flatten(item, path === "" ? key : `${path}.${key}`));
}
