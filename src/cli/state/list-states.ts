import { trustOfProcess } from "#engine/project/project.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { statesOf, type States } from "#engine/states/open-states.ts";
import { projectIfAny } from "../orchestrate/list-orchestrations.ts";
import type { CommonFlags } from "../options.ts";
import { firstSentence, formatTable, wrapToScreen } from "../terminal/format-table.ts";
import { drawParams, plainParams } from "../watch/param-options.ts";
import { printRows, printResult } from "../terminal/format-result.ts";

export interface ListFlags extends CommonFlags {
  readonly output: "table" | "json";
}

function open(project: string | undefined): States {
  return statesOf({ project: projectIfAny(project), shipped: shippedRoot(), trust: trustOfProcess(process.env) });
}

/** Prints every state: those of the project, then the shipped ones that it does not replace. */
export function listStates({ project, output }: ListFlags): void {
  const states = open(project).list();
  const rows = states.map(({ name, origin, description = "" }) => [name, origin, firstSentence(description)]);
  printRows(states, output, ["NAME", "FROM", "DESCRIPTION"], rows);
}

/** Prints a state's parameters and steps, and where it comes from. */
export function showState(name: string, { project, output }: ListFlags): void {
  const { shown, origin, description, params, steps } = open(project).load(name);
  const listed = steps.map((step) => ({
    id: step.id ?? "",
    does: step.kind === "include" ? `include ${step.include}` : step.module,
  }));
  if (output === "json") {
    printResult({ name, file: shown, origin, description, params: plainParams(params), steps: listed }, "json");
    return;
  }
  process.stdout.write(
    `${name}  (${shown}, ${origin})\n${description === undefined ? "" : `${wrapToScreen(description)}\n`}`,
  );
  process.stdout.write(drawParams(params));
  process.stdout.write(
    `\n${formatTable(
      ["STEP", "DOES"],
      listed.map(({ id, does }) => [id, does]),
    )}`,
  );
}
