import { registry } from "#engine/modules/registry.ts";
import { openOwnModules, type OwnModules } from "#engine/own-modules/open-modules.ts";
import { trustOfProcess } from "#engine/project/project.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { moduleExample } from "./module-example.ts";

/** The modules that states of a project can use: the shipped ones and its own. */
export interface KnownModules {
  readonly names: readonly string[];
  /** @throws KcoreError with what is wrong with the file of one of the project's own */
  load(name: string): Promise<ModuleDefinition | undefined>;
  /** @throws KcoreError for the first one that cannot be read */
  all(): Promise<readonly ModuleDefinition[]>;
  /** In YAML, as a step has it. */
  example(name: string): string | undefined;
}

/** Those of this project, or the shipped ones alone. */
export function knownModules(project: string | undefined): KnownModules {
  const own = ownModulesOf(project);
  const modules = own.beside(registry);
  return {
    names: [...modules.keys()],
    load: async (name) => modules.get(name)?.(),
    all: () => Promise.all(modules.values().map((load) => load())),
    example: (name) => {
      if (!own.names.includes(name)) return moduleExample(name);
      const { example } = own.load(name);
      return example && printYaml({ [name]: example }).trimEnd();
    },
  };
}

export function ownModulesOf(project: string | undefined): OwnModules {
  return openOwnModules({ project, shipped: shippedRoot(), trust: trustOfProcess(process.env) });
}
