import { existsSync } from "node:fs";
import { relative, resolve } from "node:path";
import type { Selection } from "#engine/orchestrate/check-project.ts";
import { listOrchestrations, loadOrchestration, type Orchestration } from "#engine/orchestrate/load-orchestration.ts";
import type { Folder } from "#engine/project/folders.ts";
import type { States } from "#engine/states/open-states.ts";
import { KcoreError, usageError } from "#errors/problem.ts";

/** The states and orchestrations of a project, of which files select some. */
export interface SelectionSource {
  readonly project: string;
  readonly states: States;
  readonly folders: readonly Folder[];
}

/**
 * Selects the checks for these files: the states and orchestrations themselves, and those that use them. Other files of
 * a project, such as its roster and templates, concern everything: then the selection is undefined.
 * @throws KcoreError USAGE for a file that is missing or outside of the project
 */
export function selectionOf(files: readonly string[], choice: SelectionSource): Selection | undefined {
  const names = files.map((file) => nameIn(choice.project, file));
  const named = (folder: string) =>
    names.flatMap((name) => new RegExp(`^${folder}/(.+)\\.yaml$`).exec(name)?.[1] ?? []);
  const [states, orchestrations] = [new Set(named("states")), new Set(named("orchestrate"))];
  if (states.size + orchestrations.size < new Set(names).size) return undefined;
  addIncludingStates(states, choice.states);
  addUsingOrchestrations(orchestrations, states, choice.folders);
  return { states, orchestrations, templates: false };
}

function nameIn(project: string, file: string): string {
  const name = relative(project, resolve(file));
  if (!existsSync(file)) throw usageError(`there is no file ${file}`);
  if (name !== "" && !name.startsWith("../")) return name;
  const hint = "without names, all of the project is checked; --project DIR names another one";
  throw usageError(`${file} is no file of the project ${project}`, hint);
}

/** Adds the states that include a wanted one, directly or through other states. */
function addIncludingStates(wanted: Set<string>, states: States): void {
  const all = states.list().map(({ name }) => ({ name, steps: states.readPartly(name).state?.steps ?? [] }));
  for (let size = -1; size !== wanted.size;) {
    size = wanted.size;
    for (const { name, steps } of all)
      if (steps.some((step) => step.kind === "include" && wanted.has(step.include))) wanted.add(name);
  }
}

function addUsingOrchestrations(wanted: Set<string>, states: ReadonlySet<string>, folders: readonly Folder[]): void {
  for (const name of listOrchestrations(folders).keys()) {
    const orchestration = read(name, folders);
    const uses = orchestration?.stages.some(
      ({ within, work }) =>
        within.some(({ include }) => wanted.has(include)) ||
        // An expression as a name may mean any state.
        (work.kind === "apply" && work.states.some((state) => state.each !== undefined || states.has(state.name))),
    );
    if (uses) wanted.add(name);
  }
}

/** Undefined for an unreadable orchestration, which its own check reports. */
function read(name: string, folders: readonly Folder[]): Orchestration | undefined {
  try {
    return loadOrchestration(name, folders);
  } catch (error) {
    if (error instanceof KcoreError) return undefined;
    throw error;
  }
}
