import { foldersOf, type Folder } from "#engine/project/folders.ts";
import { listOrchestrations, loadOrchestration } from "#engine/orchestrate/load-orchestration.ts";
import { KcoreError } from "#errors/problem.ts";
import type { CommonFlags, ResultFormat } from "../options.ts";
import { placesOf, projectIfAny } from "../project/find-project.ts";
import { firstSentence, wrapToScreen } from "../terminal/format-table.ts";
import { drawParams, plainParams } from "../watch/params.ts";
import { printRows, printResult } from "../terminal/format-result.ts";

/** The folders of orchestrations: the project's, if there is one, then the shipped one. */
export function orchestrationFolders(given: string | undefined): readonly Folder[] {
  return foldersOf("orchestrate", placesOf(projectIfAny(given)));
}

/** Prints every orchestration with its description, or with its mistake. */
export function printOrchestrations({ project, output }: CommonFlags & { readonly output: ResultFormat }): void {
  const folders = orchestrationFolders(project);
  const found = [...listOrchestrations(folders)].map(([name, origin]) => ({
    name,
    origin,
    ...describe(name, folders),
  }));
  const rows = found.map(({ name, origin, params, description }) => [
    name,
    origin,
    params.join(", "),
    firstSentence(description),
  ]);
  printRows(found, output, ["NAME", "FROM", "PARAMETERS", "DESCRIPTION"], rows);
}

/** Prints an orchestration's description, its parameters, and its stages. @throws KcoreError ORCHESTRATION_UNKNOWN */
export function printOrchestration(
  name: string,
  { project, output }: CommonFlags & { readonly output: ResultFormat },
): void {
  const { description = "", params, stages } = loadOrchestration(name, orchestrationFolders(project));
  const titles = stages.map(({ title }) => title);
  const value = { name, description, params: plainParams(params), stages: titles };
  const draw = () => `${name}\n${wrapToScreen(description)}\n${drawParams(params)}\nStages: ${titles.join(", ")}\n`;
  printResult(value, output, draw);
}

/** The parameters of an orchestration for its help; empty if it cannot be read. */
export function paramsForHelp(name: string | undefined): string {
  if (name === undefined) return "";
  try {
    const { params } = loadOrchestration(name, orchestrationFolders(undefined));
    return params.size === 0
      ? `\n${name} takes no parameters.`
      : `\nParameters of ${name}, given with --set:${drawParams(params)}`;
  } catch {
    return "";
  }
}

function describe(
  name: string,
  folders: readonly Folder[],
): { readonly params: readonly string[]; readonly description: string } {
  try {
    const { description = "", params } = loadOrchestration(name, folders);
    return { params: [...params.keys()], description };
  } catch (error) {
    if (!(error instanceof KcoreError)) throw error;
    return { params: [], description: `cannot be read: ${error.problems[0]?.message ?? ""}` };
  }
}
