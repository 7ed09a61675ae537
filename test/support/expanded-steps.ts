import { join } from "node:path";
import { loadRoster } from "#engine/roster/load-roster.ts";
import { expandSteps, type ExpandOptions } from "#engine/states/expand-steps.ts";
import { statesOf } from "#engine/states/open-states.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { secret } from "#engine/step/secret.ts";
import { inProject } from "./in-project.ts";

type Modules = ReadonlyMap<string, ModuleDefinition | (() => Promise<ModuleDefinition>)>;
type Options = Partial<ExpandOptions> & { readonly on?: string };

/** Expands the state s of a project with these files, by default for its node n1; every secret is `s3cret`. */
export const expandedSteps = (
  files: Readonly<Record<string, string>>,
  modules: Modules,
  options?: Options,
): Promise<readonly UnresolvedStep[]> => withExpandedSteps(files, modules, (drafts) => drafts, options);

/** As expandedSteps, for `work` that needs the project's files. */
export function withExpandedSteps<T>(
  files: Readonly<Record<string, string>>,
  modules: Modules,
  work: (drafts: readonly UnresolvedStep[]) => T,
  { on = "n1", ...options }: Options = {},
): Promise<T> {
  return inProject({ "roster/r.yaml": "nodes: { n1: { address: h1 } }\n", ...files }, async (project) => {
    const { nodes } = loadRoster(project);
    const node = nodes.get(on);
    if (node === undefined) throw new Error(`the test has no node ${on}`);
    const drafts = await expandSteps(statesOf({ project, shipped: join(project, "shipped") }), {
      apply: [{ state: "s" }],
      node,
      nodes,
      run: { id: "r1" },
      moduleNames: [...modules.keys()],
      modules: async (name) => {
        const found = modules.get(name);
        return typeof found === "function" ? found() : found;
      },
      readSecret: () => Promise.resolve(secret("s3cret")),
      ...options,
    });
    return work(drafts);
  });
}
