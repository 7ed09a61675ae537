import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { registry } from "#engine/modules/registry.ts";
import { openOwnModules, type OwnModules } from "#engine/own-modules/open-modules.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { printYaml } from "#engine/yaml/plain-yaml.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { placesOf } from "../project/find-project.ts";

/** The modules that states of a project can use: the shipped ones and its own. */
export type KnownModules = ReturnType<typeof knownModules>;

/** The modules of this project and the shipped ones; without a project the shipped ones alone. */
export function knownModules(project: string | undefined) {
  const own = ownModulesOf(project);
  const modules = own.beside(registry);
  return {
    names: [...modules.keys()],
    /** @throws KcoreError for a mistake in the file of one of the project's own modules */
    load: async (name: string) => modules.get(name)?.(),
    /** All readable modules. For each other one, stderr says that it is unreadable, and how to see why. */
    all: async (): Promise<readonly ModuleDefinition[]> =>
      (await Promise.all([...modules].map(([name, load]) => load().catch(tellBroken(name))))).flat(),
    /** An example in YAML, as a step of a state. */
    example: (name: string): string | undefined => {
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

/** Examples of one module. */
export interface ModuleExamples {
  /** A step in YAML, from the module's doc comment. */
  readonly example: string;
  /** Steps that the tests apply to real machines. */
  readonly tried: readonly {
    readonly args: Readonly<Record<string, unknown>>;
    /** The code that the step is refused with. */
    readonly refused?: string;
  }[];
}

/**
 * The YAML example that a module's doc comment opens with. In the source tree it is read from the module's file; the
 * bundle has no comments, so the build collects them.
 */
export function moduleExample(name: string): string | undefined {
  const source = join(shippedRoot(), "src", "engine", "modules", `${name.replaceAll(/[._]/g, "-")}.ts`);
  if (existsSync(source)) return exampleIn(readFileSync(source, "utf8"));
  return collectedExamples(name)?.example;
}

/** The examples of a module that the build collected; undefined without a build or for an unknown module. */
export function collectedExamples(name: string): ModuleExamples | undefined {
  const collected = join(shippedRoot(), "dist", "module-examples.json");
  return existsSync(collected)
    ? (JSON.parse(readFileSync(collected, "utf8")) as Record<string, ModuleExamples>)[name]
    : undefined;
}

/** The text between the first two fences of yaml in a source file, without the comment's stars. */
export function exampleIn(source: string): string | undefined {
  const found = /```yaml\n([\s\S]*?)```/.exec(source)?.[1];
  return found
    ?.replaceAll(/^ ?\* ?/gm, "")
    .replace(/ ?\* ?$/, "")
    .trimEnd();
}
