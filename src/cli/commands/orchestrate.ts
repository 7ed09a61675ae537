import { readFile } from "node:fs/promises";
import { Command, Option } from "commander";
import { KcoreError } from "#errors/problem.ts";
import { collect } from "../options.ts";
import { addRunOptions, requestOf, startRun, type RunFlags } from "../start-run.ts";
import type { RunOutput } from "../watch-run.ts";

interface OrchestrateFlags extends RunFlags {
  readonly set?: readonly string[];
  readonly params?: string;
  readonly output: RunOutput;
}

/** `kcore orchestrate NAME [TARGET]`; without a name it lists what there is. */
export function orchestrateCommand(): Command {
  const command = new Command("orchestrate")
    .description("Run an orchestration over nodes; without a name, list what there is")
    .argument("[name]", "the orchestration: deploy_node, …")
    .argument("[target]", "the nodes, when it takes them: the same as --on");
  addRunOptions(command, { full: true })
    .option("--set <name=value>", "a parameter (repeatable)", collect)
    .option("--params <json>", "parameters as a JSON object, or @FILE")
    .option("--skip-health", "do not look at the cluster's health first; this is recorded")
    .addOption(new Option("-o, --output <view>", "how to show the run").choices(["plain", "json"]).default("plain"))
    .addHelpText(
      "after",
      `
Examples:
  kcore orchestrate deploy_node n1
  kcore orchestrate deploy_node --on 'role:worker and not dc:DC2' --dry-run
  kcore orchestrate deploy_node n1 --set fs_mode=xfs --grant S3Z8NB0K
  kcore orchestrate deploy_node n1 --params @params.json --output json --yes`,
    )
    .action(orchestrate);
  return command;
}

async function orchestrate(
  name: string | undefined,
  target: string | undefined,
  flags: OrchestrateFlags,
): Promise<void> {
  if (name === undefined) {
    const { listOrchestrations } = await import("../list-orchestrations.ts");
    return listOrchestrations(flags);
  }
  const on = [...(target === undefined ? [] : [target]), ...(flags.on ?? [])];
  const params = { ...(await readParams(flags.params)), ...readSets(flags.set ?? []) };
  const request = requestOf({ ...flags, on }, { kind: "orchestration", name }, { params });
  process.exitCode = (await startRun(flags, request, { output: flags.output })).exitCode;
}

/** `--set a=b`: always text, the orchestration's declared type decides. */
function readSets(pairs: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const equals = pair.indexOf("=");
      if (equals > 0) return [pair.slice(0, equals), pair.slice(equals + 1)];
      throw new KcoreError({ code: "USAGE", message: `--set ${pair} names no value`, hint: "--set name=value" });
    }),
  );
}

async function readParams(given: string | undefined): Promise<Record<string, unknown>> {
  if (given === undefined) return {};
  const text = given.startsWith("@") ? await readText(given.slice(1)) : given;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    throw new SyntaxError("it is not an object");
  } catch (cause) {
    throw new KcoreError(
      {
        code: "USAGE",
        message: `--params is not a JSON object: ${(cause as Error).message}`,
        hint: `--params '{"name": "value"}' or --params @FILE`,
      },
      { cause },
    );
  }
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (cause) {
    throw new KcoreError(
      { code: "FILE_UNREADABLE", message: `cannot read ${file}: ${(cause as Error).message}` },
      { cause },
    );
  }
}
