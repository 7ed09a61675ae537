import { KcoreError } from "#errors/problem.ts";
import { registry } from "#engine/modules/registry.ts";
import { openOwnModules, type OwnModules } from "#engine/own-modules/open-modules.ts";
import { placesOf } from "../project/find-project.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { moduleExample } from "./module-example.ts";

/** The modules that states of a project can use: the shipped ones and its own. */
export interface KnownModules {
  readonly names: readonly string[];
  /** @throws KcoreError for a mistake in the file of one of the project's own modules */
  load(name: string): Promise<ModuleDefinition | undefined>;
  /** All readable modules. For each other one, stderr says that it is unreadable, and how to see why. */
  all(): Promise<readonly ModuleDefinition[]>;
  /** An example in YAML, as a step of a state. */
  example(name: string): string | undefined;
}

/** The modules of this project and the shipped ones; without a project the shipped ones alone. */
export function knownModules(project: string | undefined): KnownModules {
  const own = ownModulesOf(project);
  const modules = own.beside(registry);
  return {
    names: [...modules.keys()],
    load: async (name) => modules.get(name)?.(),
    all: async () => (await Promise.all([...modules].map(([name, load]) => load().catch(tellBroken(name))))).flat(),
    example: (name) => {
      if (!own.names.includes(name)) return moduleExample(name);
      const { example } = own.load(name);
      return example && printYaml({ [name]: example }).trimEnd();
    },
  };
}

/** A broken file must not hide the others. */
function tellBroken(name: string): (error: unknown) => [] {
  return (error) => {
    if (!(error instanceof KcoreError)) throw error;
    process.stderr.write(`${name} cannot be used: kcore check says why\n`);
    return [];
  };
}

export function ownModulesOf(project: string | undefined): OwnModules {
  return openOwnModules(placesOf(project));
}
