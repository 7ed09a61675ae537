import { Command } from "commander";
import { addRunOptions, requestOf, startRun, type RunFlags } from "../start-run.ts";
import { readParams, readSets } from "../params.ts";
import { projectIfAny } from "../list-orchestrations.ts";
import { addProjectOption, addResultOption, addViewOption, collect, type CommonFlags } from "../options.ts";
import { formatTable } from "../table.ts";
import { trustOfProcess } from "#engine/roster/project.ts";
import { shippedRoot } from "#engine/source/shipped.ts";
import { statesOf, type States } from "#engine/states/open.ts";
import { chooseView, type ViewName } from "../screen.ts";
import { requireTarget } from "./exec.ts";

interface ApplyFlags extends RunFlags {
  readonly set?: readonly string[];
  readonly params?: string;
  readonly output?: ViewName;
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
    .action(list);
  addResultOption(addProjectOption(state.command("show <name>")))
    .description("Show a state's parameters and steps, and where it comes from")
    .action(show);
  addViewOption(addRunOptions(state.command("apply <names...>"), { full: true }))
    .description("Apply states to nodes, in the order given")
    .option("--set <name=value>", "a parameter (repeatable)", collect)
    .option("--params <json>", "parameters as a JSON object, or @FILE")
    .action(apply);
  return state;
}

interface ListFlags extends CommonFlags {
  readonly output: "table" | "json";
}

function open(project: string | undefined): States {
  const shipped = shippedRoot();
  return statesOf({ project: projectIfAny(project) ?? shipped, shipped, trust: trustOfProcess(process.env) });
}

function list({ project, output }: ListFlags): void {
  const states = open(project).list();
  if (output === "json") process.stdout.write(`${JSON.stringify(states, undefined, 2)}\n`);
  else
    process.stdout.write(
      formatTable(
        ["NAME", "FROM", "DESCRIPTION"],
        states.map(({ name, origin, description = "" }) => [name, origin, description]),
      ),
    );
}

function show(name: string, { project, output }: ListFlags): void {
  const { shown, origin, description, params, steps } = open(project).load(name);
  const declared = [...params.values()].map(({ name: param, type, required, description: meaning = "" }) => ({
    name: param,
    type,
    required,
    description: meaning,
  }));
  const listed = steps.map((step) => ({
    id: step.id ?? "",
    does: step.kind === "include" ? `include ${step.include}` : step.module,
  }));
  if (output === "json") {
    process.stdout.write(
      `${JSON.stringify({ name, file: shown, origin, description, params: declared, steps: listed }, undefined, 2)}\n`,
    );
    return;
  }
  process.stdout.write(`${name}  (${shown}, ${origin})\n${description === undefined ? "" : `${description}\n`}`);
  if (declared.length > 0)
    process.stdout.write(
      `\n${formatTable(
        ["PARAMETER", "TYPE", "", "MEANING"],
        declared.map((param) => [param.name, param.type, param.required ? "required" : "", param.description]),
      )}`,
    );
  process.stdout.write(
    `\n${formatTable(
      ["STEP", "DOES"],
      listed.map(({ id, does }) => [id, does]),
    )}`,
  );
}

async function apply(names: readonly string[], flags: ApplyFlags): Promise<void> {
  requireTarget(flags, `state apply ${names.join(" ")}`);
  const params = { ...(await readParams(flags.params)), ...readSets(flags.set ?? []) };
  const request = requestOf(flags, { kind: "state", names }, { params });
  process.exitCode = (await startRun(flags, request, { output: chooseView(flags.output) })).exitCode;
}
