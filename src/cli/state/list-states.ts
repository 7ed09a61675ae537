import { statesOf, type States } from "#engine/states/open-states.ts";
import { placesOf, projectIfAny } from "../project/find-project.ts";
import type { CommonFlags } from "../options.ts";
import { firstSentence, formatTable, wrapToScreen } from "../terminal/format-table.ts";
import { drawParams, plainParams } from "../watch/params.ts";
import { printRows, printResult } from "../terminal/format-result.ts";

export interface ListStatesFlags extends CommonFlags {
  readonly output: "table" | "json";
}

function openStates(project: string | undefined): States {
  return statesOf(placesOf(projectIfAny(project)));
}

/** Prints every state: those of the project, then the shipped ones that it does not replace. */
export function printStates({ project, output }: ListStatesFlags): void {
  const states = openStates(project).list();
  const rows = states.map(({ name, origin, description = "" }) => [name, origin, firstSentence(description)]);
  printRows(states, output, ["NAME", "FROM", "DESCRIPTION"], rows);
}

/** Prints a state's parameters and steps, and where it comes from. */
export function printState(name: string, { project, output }: ListStatesFlags): void {
  const { shown, origin, description, params, steps } = openStates(project).load(name);
  const listed = steps.map((step) => ({
    id: step.id ?? "",
    does: step.kind === "include" ? `include ${step.include}` : step.module,
  }));
  const value = { name, file: shown, origin, description, params: plainParams(params), steps: listed };
  const rows = listed.map(({ id, does }) => [id, does]);
  const head = `${name}  (${shown}, ${origin})\n${description === undefined ? "" : `${wrapToScreen(description)}\n`}`;
  printResult(value, output, () => `${head}${drawParams(params)}\n${formatTable(["STEP", "DOES"], rows)}`);
}
