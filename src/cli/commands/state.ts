import { Command, Option } from "commander";
import { addRunOptions, requestOf, startRun, type RunFlags } from "../start-run.ts";
import { readParams, readSets } from "../params.ts";
import { collect } from "../options.ts";
import type { RunOutput } from "../watch-run.ts";
import { requireTarget } from "./exec.ts";

interface ApplyFlags extends RunFlags {
  readonly set?: readonly string[];
  readonly params?: string;
  readonly output: RunOutput;
}

/** `kcore state list|show|apply`. */
export function stateCommand(): Command {
  const state = new Command("state")
    .description("States: ordered lists of steps that keep a node in order")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore state list\n  kcore state show disks\n  kcore state apply preflight --on n1 --dry-run",
    );
  addRunOptions(state.command("apply <names...>"), { full: true })
    .description("Apply states to nodes, in the order given")
    .option("--set <name=value>", "a parameter (repeatable)", collect)
    .option("--params <json>", "parameters as a JSON object, or @FILE")
    .addOption(new Option("-o, --output <view>", "how to show the run").choices(["plain", "json"]).default("plain"))
    .action(apply);
  return state;
}

async function apply(names: readonly string[], flags: ApplyFlags): Promise<void> {
  requireTarget(flags, `state apply ${names.join(" ")}`);
  const params = { ...(await readParams(flags.params)), ...readSets(flags.set ?? []) };
  const request = requestOf(flags, { kind: "state", names }, { params });
  process.exitCode = (await startRun(flags, request, { output: flags.output })).exitCode;
}
