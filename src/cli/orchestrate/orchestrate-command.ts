import { Command } from "commander";
import { addViewOptions, collect } from "../options.ts";
import { readParams, readSets } from "../watch/param-options.ts";
import { addRunOptions, requestOf, startRun, type RunFlags } from "../watch/start-run.ts";
import { viewOf, type ViewFlags } from "../terminal/choose-view.ts";

interface OrchestrateFlags extends RunFlags, ViewFlags {
  readonly set?: readonly string[];
  readonly params?: string;
}

/** `kcore orchestrate NAME [TARGET]`; without a name it lists what there is. */
export function orchestrateCommand(): Command {
  const command = new Command("orchestrate")
    .description("Run an orchestration over nodes; without a name, list what there is")
    .argument("[name]", "the orchestration: deploy_node, …")
    .argument("[target]", "the nodes, when it takes them: the same as --on");
  addViewOptions(addRunOptions(command, { full: true }))
    .option("--set <name=value>", "a parameter (repeatable)", collect)
    .option("--params <json>", "parameters as a JSON object, or @FILE")
    .option("--skip-health", "do not look at the cluster's health first; this is recorded")
    .addHelpText(
      "after",
      `
Examples:
  kcore orchestrate deploy_node n1
  kcore orchestrate deploy_node --on 'role:worker and not dc:DC2' --dry-run
  kcore orchestrate deploy_node n1 --set memory=8G --grant S3Z8NB0K:9f2c51d07ab3e846
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
    const { listOrchestrations } = await import("./list-orchestrations.ts");
    return listOrchestrations({ ...flags, output: flags.output === "json" ? "json" : "table" });
  }
  const on = [...(target === undefined ? [] : [target]), ...(flags.on ?? [])];
  const params = { ...(await readParams(flags.params, flags.project)), ...readSets(flags.set ?? []) };
  const request = requestOf({ ...flags, on }, { kind: "orchestration", name }, { params });
  process.exitCode = (await startRun(flags, request, viewOf(flags))).exitCode;
}
