import { actionNames, findAction } from "#actions/registry.ts";
import { registry } from "#engine/modules/registry.ts";
import { checkProject, type ProjectCheck } from "#engine/orchestrate/check-project.ts";
import { parseShell } from "#engine/orchestrate/parse-shell.ts";
import type { OwnModules } from "#engine/own-modules/open-modules.ts";
import { foldersOf } from "#engine/project/folders.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { Problems } from "#engine/yaml/problems.ts";
import type { Problem } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { ownModulesOf } from "../modules/known-modules.ts";
import { packProblems } from "../pack/pinned-packs.ts";
import { placesOf } from "../project/find-project.ts";
import { projectHooks } from "../project/project-settings.ts";
import { selectionOf } from "./select-checks.ts";

/** Checks a project, or only these files of it and the files that use them; the problems are in their order. */
export async function findProblems(
  project: string,
  { files = [], on }: { readonly files?: readonly string[]; readonly on?: string | undefined } = {},
): Promise<ProjectCheck> {
  const places = { ...placesOf(project), project };
  const choice = { project, states: statesOf(places), folders: foldersOf("orchestrate", places) };
  const own = ownModulesOf(project);
  const only = files.length === 0 ? undefined : selectionOf(files, choice);
  const checked = await checkProject({
    ...places,
    hooks: () => projectHooks(project),
    actions: findAction,
    actionNames,
    modules: own.beside(registry),
    ...omitUndefined({ on, only }),
  });
  const problems = new Problems();
  problems.add(...checked.problems, ...(only === undefined ? await problemsBesideStates(project, own) : []));
  return { ...checked, problems: problems.inOrder() };
}

/** Problems of the project's own modules, also of those that no state uses, and of packs that were changed by hand. */
async function problemsBesideStates(project: string, own: OwnModules): Promise<readonly Problem[]> {
  const problems = new Problems();
  const modules = own.names.flatMap((name) => problems.attempt(() => own.loadBeside(registry, name)) ?? []);
  problems.add(...(await parseShell(modules.flatMap(({ shell }) => shell))));
  problems.add(...(await packProblems(project)));
  return problems.list;
}
