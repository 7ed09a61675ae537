import { Command } from "commander";
import { usageError } from "#errors/problem.ts";
import { addProjectOption, addResultOption, addViewOptions, collect, type CommonFlags } from "../options.ts";
import { readParams, readSets } from "../watch/params.ts";
import { addRunOptions } from "../watch/run-options.ts";
import { partOf, requestOf, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";

interface OrchestrateFlags extends RunFlags, ViewFlags {
  readonly filename?: readonly string[];
  readonly bundle?: string;
  readonly rollback?: boolean;
  readonly set?: readonly string[];
  readonly params?: string;
}

/**
 * `kcore orchestrate NAME [TARGET]`; without a name it lists the orchestrations. Only `--help` reads an orchestration
 * here, for its parameters.
 */
export async function orchestrateCommand(words: readonly string[] = []): Promise<Command> {
  const isHelp = words.some((word) => word === "--help" || word === "-h");
  const helpOf = isHelp ? (await import("./list-orchestrations.ts")).paramsForHelp : () => "";
  const command = new Command("orchestrate")
    .description("Run an orchestration over nodes; without a name, list what there is")
    .argument("[name]", "the orchestration: deploy_node, …")
    .argument("[target]", "the nodes, if the orchestration takes nodes: the same as --on");
  addViewOptions(addRunOptions(command, { full: true }))
    .option("--set <name=value>", "a parameter, or a variable of the roster for this run (repeatable)", collect)
    .option("--params <json>", "parameters as a JSON object, or @FILE")
    .option("--skip-health", "do not look at the cluster's health first; this is recorded")
    .option("-f, --filename <file>", "for update: the manifest of kind ClusterUpdate, or - for stdin", collect)
    .option("--bundle <file>", "for update: the runtime, from kcore update bundle build; else one that was built here")
    .option("--rollback", "for update: roll the update back")
    .addHelpText(
      "after",
      `
Examples:
  kcore orchestrate deploy_node n1
  kcore orchestrate deploy_node --on 'role:worker and not dc:DC2' --dry-run
  kcore orchestrate deploy_node n1 --set memory=8G --grant S3Z8NB0K:9f2c51d07ab3e846
  kcore orchestrate deploy_node n1 --params @params.json --output json --yes
  kcore orchestrate rollout --limit 'dc:DC2' --batch 25%
  kcore orchestrate rollout --from web --dry-run
  kcore orchestrate update -f rollout.yaml --dry-run
  kcore orchestrate update -f rollout.yaml
  kcore orchestrate update -f rollout.yaml --rollback

update carries a ClusterUpdate out over SSH, for clusters whose controllers are down or not there; kcore update cluster asks controllers.`,
    )
    .addHelpText("after", () => helpOf(command.args[0]))
    .action(orchestrate);
  addResultOption(addProjectOption(command.command("show <name>")))
    .description("Show what an orchestration does, its parameters and its stages")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore orchestrate show deploy_node\n  kcore orchestrate show deploy_node -o json",
    )
    .action(async (name: string, flags: CommonFlags & { readonly output: "table" | "json" }) =>
      (await import("./list-orchestrations.ts")).printOrchestration(name, flags),
    );
  return command;
}

async function orchestrate(
  name: string | undefined,
  target: string | undefined,
  flags: OrchestrateFlags,
): Promise<void> {
  if (name === undefined) {
    const { printOrchestrations } = await import("./list-orchestrations.ts");
    return printOrchestrations({ ...flags, output: flags.output === "json" ? "json" : "table" });
  }
  if (name === "update" && flags.filename !== undefined && target === undefined && !hasRunFlags(flags)) {
    const { runUpdate } = await import("./run-update.ts");
    process.exitCode = await runUpdate(flags);
    return;
  }
  refuseUpdateFlags(name, flags);
  const on = [...(target === undefined ? [] : [target]), ...(flags.on ?? [])];
  const params = { ...(await readParams(flags.params, flags.project)), ...readSets(flags.set ?? []) };
  const request = requestOf({ ...flags, on }, { kind: "orchestration", name }, { params });
  process.exitCode = (await startRun(flags, request, viewFromFlags(flags))).exitCode;
}

/** Whether flags name nodes, parameters, a part, a batch or `--skip-health`, none of which `update -f` takes. */
function hasRunFlags({ on, set, params, skipHealth, batch, ...flags }: OrchestrateFlags): boolean {
  return [on, set, params, skipHealth, batch, partOf(flags)].some((given) => given !== undefined);
}

/** Refuses `-f`, `--bundle` and `--rollback` where they mean nothing. @throws KcoreError USAGE */
function refuseUpdateFlags(name: string, { filename, bundle, rollback }: OrchestrateFlags): void {
  if (filename === undefined && bundle === undefined && rollback === undefined) return;
  const [message, hint] =
    name !== "update"
      ? [`-f, --bundle and --rollback belong to update, not to “${name}”`, "leave them out"]
      : filename === undefined
        ? ["no file with an update is named", "kcore orchestrate update -f rollout.yaml"]
        : [
            "the manifest says which nodes, and how",
            "leave out target, --on, --set, --params, --skip-health, --batch …",
          ];
  throw usageError(message, hint);
}
