import { Command } from "commander";
import { usageError } from "#errors/problem.ts";
import type { ListStatesFlags } from "./list-states.ts";
import { addRunOptions } from "../watch/run-options.ts";
import { requestOf, requireTarget, type RunFlags } from "../watch/run-request.ts";
import { startRun } from "../watch/start-run.ts";
import { readParams, readSets } from "../watch/params.ts";
import { addProjectOption, addResultOption, addViewOptions, collect } from "../options.ts";
import { viewFromFlags, type ViewFlags } from "../terminal/choose-view.ts";

interface StateApplyFlags extends RunFlags, ViewFlags {
  readonly set?: readonly string[];
  readonly params?: string;
}

interface ShowStateFlags extends ListStatesFlags {
  readonly on?: readonly string[];
  readonly set?: readonly string[];
}

/** `kcore state list|show|apply`. */
export function stateCommand(): Command {
  const state = new Command("state")
    .description("States: ordered lists of steps that keep a node in order")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore state list\n  kcore state show disks\n  kcore state apply preflight --on n1 --dry-run",
    );
  addResultOption(addProjectOption(state.command("list")))
    .description("List states: those of the project, then the shipped ones that it does not replace")
    .addHelpText("after", "\nExamples:\n  kcore state list\n  kcore state list -o json")
    .action(async (flags: ListStatesFlags) => (await import("./list-states.ts")).printStates(flags));
  addResultOption(addProjectOption(state.command("show <name>")))
    .description("Show a state's parameters and steps, or with --on the steps as nodes would get them")
    .option("--on <target>", "show the steps with these nodes' values, without a connection (repeatable)", collect)
    .option("--set <name=value>", "with --on: a parameter (repeatable)", collect)
    .addHelpText(
      "after",
      "\nExamples:\n  kcore state show disks\n  kcore state show kcore/key -o json\n  kcore state show web --on n1 --set port=8080",
    )
    .action(async (name: string, { on, set = [], ...flags }: ShowStateFlags) => {
      if (on === undefined && set.length > 0)
        throw usageError("--set gives values to the steps of nodes", `kcore state show ${name} --on TARGET --set …`);
      if (on === undefined) return (await import("./list-states.ts")).printState(name, flags);
      return (await import("./show-rendered.ts")).printRendered(name, { ...flags, on, params: readSets(set) });
    });
  addViewOptions(addRunOptions(state.command("apply <names...>"), { full: true }))
    .description("Apply states to nodes, in the order given")
    .option("--set <name=value>", "a parameter, or a variable of the roster for this run (repeatable)", collect)
    .option("--params <json>", "parameters as a JSON object, or @FILE")
    .addHelpText(
      "after",
      `
Examples:
  kcore state apply preflight --on n1 --dry-run
  kcore state apply web --on 'role:web' --tags config --set port=8080
  kcore state apply web tools --on 'role:worker' --report run.html`,
    )
    .action(apply);
  return state;
}

async function apply(names: readonly string[], flags: StateApplyFlags): Promise<void> {
  requireTarget(flags, `state apply ${names.join(" ")}`);
  const params = { ...(await readParams(flags.params, flags.project)), ...readSets(flags.set ?? []) };
  const request = requestOf(flags, { kind: "state", names }, { params });
  process.exitCode = (await startRun(flags, request, viewFromFlags(flags))).exitCode;
}
