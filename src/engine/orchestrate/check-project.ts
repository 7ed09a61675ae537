import type { z } from "zod";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { shellSources, type ShellSource } from "#engine/expressions/shell-values.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import { type Folder, foldersOf, listIn } from "#engine/project/folders.ts";
import { loadRoster } from "#engine/roster/load-roster.ts";
import type { Roster } from "#engine/roster/roster.ts";
import { unansweredSources } from "#engine/roster/sources.ts";
import { leaveUnknown, StateChecker } from "#engine/states/check-states.ts";
import { statesOf } from "#engine/states/open-states.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { ValueKeys } from "#engine/states/step-keys.ts";
import type { StepSource } from "#engine/states/step-source.ts";
import { plainOf, type SourceNode } from "#engine/yaml/node.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { openCatalogue, type CatalogueDependencies } from "./catalogue.ts";
import { checkOrchestration } from "./check-orchestration.ts";
import { parseShell } from "./parse-shell.ts";
import type { StageSource } from "./stage-source.ts";
import { listOrchestrations, loadOrchestration } from "./load-orchestration.ts";
import { readNotices } from "./notices.ts";
import type { ProjectHook } from "./project-hooks.ts";

export interface CheckOptions extends Omit<CatalogueDependencies, "readSecret"> {
  /** See `RunDependencies.hooks`. */
  readonly hooks?: () => readonly ProjectHook[];
  readonly modules: ReadonlyMap<string, () => Promise<ModuleDefinition>>;
  /** See `OrchestrationCheckInput.on`. */
  readonly on?: string;
  /** The checked files; absent: all. */
  readonly only?: Selection;
}

/** The states and orchestrations that are checked, by name. */
export interface Selection {
  readonly states: ReadonlySet<string>;
  readonly orchestrations: ReadonlySet<string>;
  readonly templates: boolean;
}

export interface ProjectCheck {
  readonly problems: readonly Problem[];
  readonly nodes: number;
  readonly states: readonly string[];
  readonly orchestrations: readonly string[];
  /** Sources in `roster/` that have never answered: the nodes are unknown then. */
  readonly unasked: readonly string[];
}

/** Checks a project without a connection: its roster, its states and templates, and its orchestrations on the nodes of the roster. */
export async function checkProject(options: CheckOptions): Promise<ProjectCheck> {
  const { project, trust, modules, only } = options;
  const problems = new Problems();
  // The project may not be trusted yet: the check runs no program of the roster, and queries none of its addresses.
  const unasked = unansweredSources(project);
  const rosterProblems = new Problems();
  const known = rosterProblems.attempt(() =>
    loadRoster(project, { ...(trust && { trust }), sources: { onlyKept: true } }),
  );
  const roster = unasked.length === 0 ? known : undefined;
  // A missing group or jump host may come from a source that has never answered.
  problems.add(...rosterProblems.list.filter(({ code }) => unasked.length === 0 || !codesOfOtherFiles.has(code)));
  problems.attempt(() => readNotices(project, trust));
  const states = statesOf(options);
  const hooks = problems.attempt(() => options.hooks?.() ?? []) ?? [];
  const run = { id: "check", time: new Date().toISOString(), revision: null, challenge: "check", hooks };

  const listed = new Set(states.list().map(({ name }) => name));
  for (const { kind, state } of hooks)
    if (kind === "state" && !listed.has(state)) problems.attempt(() => states.load(state));
  const names = states.list().filter(({ origin, name }) => origin === "project" && (only?.states.has(name) ?? true));
  const checker = new StateChecker(states, {
    nodes: roster?.nodes ?? new Unknown("the roster"),
    run,
    modules: async (name) => modules.get(name)?.(),
    moduleNames: [...modules.keys()],
  });
  for (const { name } of names) problems.add(...(await checker.check(name)));
  const texts: ShellSource[] = [];
  for (const { name } of names)
    for (const step of states.readPartly(name).state?.steps ?? []) texts.push(...(await textsOfStep(step, modules)));

  if (only?.templates !== false)
    for (const name of ownFiles("templates", options, ".hbs"))
      problems.attempt(() => states.templates.references(name));

  const folders = foldersOf("orchestrate", options);
  const orchestrations = [...listOrchestrations(folders)]
    .filter(([name, origin]) => origin === "project" && (only?.orchestrations.has(name) ?? true))
    .map(([name]) => name);
  const catalogue = openCatalogue(
    { ...options, readSecret: leaveUnknown },
    { roster: roster ?? EMPTY_ROSTER, run },
    modules,
  );
  for (const name of orchestrations) {
    const { on } = options;
    const input = { folders, catalogue, run, ...(roster && { roster }), ...(on !== undefined && { on }) };
    problems.add(...(await checkOrchestration(name, input)));
    for (const stage of stagesIn(name, folders)) texts.push(...(await textsOfStage(stage, options)));
  }
  problems.add(...(await parseShell(texts)));
  return {
    problems: problems.inOrder(),
    nodes: roster?.nodes.size ?? 0,
    states: names.map(({ name }) => name),
    orchestrations,
    unasked,
  };
}

async function textsOfStep(step: StepSource, modules: CheckOptions["modules"]): Promise<readonly ShellSource[]> {
  const own = shellSources(ValueKeys, step.node, {});
  if (step.kind === "include") return own;
  // The check of the steps reports problems of a module's file.
  const module = await modules
    .get(step.module)?.()
    .catch(() => undefined);
  return [...own, ...(module === undefined ? [] : textsOfArgs(module.args, step.args))];
}

async function textsOfStage({ work, onFailure }: StageSource, options: CheckOptions): Promise<readonly ShellSource[]> {
  const action = work.kind === "run" ? await options.actions(work.action) : undefined;
  const own = action && work.kind === "run" ? textsOfArgs(action.args, work.args) : [];
  const others = await Promise.all(onFailure.map((inner) => textsOfStage(inner, options)));
  return [...own, ...others.flat()];
}

function textsOfArgs(schema: z.ZodType, args: SourceNode): readonly ShellSource[] {
  return args.kind === "map" ? shellSources(schema, args, plainOf(args) as Readonly<Record<string, unknown>>) : [];
}

/** The file's own stages, without included stages; another check reports a file that cannot be read. */
function stagesIn(name: string, folders: readonly Folder[]): readonly StageSource[] {
  try {
    const { stages, onFailure } = loadOrchestration(name, folders);
    return [...stages, ...onFailure].filter(({ within }) => within.length === 0);
  } catch (error) {
    if (error instanceof KcoreError) return [];
    throw error;
  }
}

/** Codes of problems for which another file of the roster may be the cause. */
const codesOfOtherFiles: ReadonlySet<string> = new Set(["ROSTER_GROUP_UNKNOWN", "ROSTER_JUMP"]);

const EMPTY_ROSTER: Roster = { nodes: new Map(), jumps: new Map(), positions: new Map(), files: [] };

function ownFiles(kind: string, places: CheckOptions, ending: string): readonly string[] {
  return [...listIn(foldersOf(kind, places), [ending])]
    .filter(([, { folder }]) => folder.origin === "project")
    .map(([name]) => name);
}
