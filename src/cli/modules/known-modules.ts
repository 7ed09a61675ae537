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
    /** The module; undefined for an unknown name. @throws KcoreError for a mistake in the file of a project's own module */
    load: async (name: string) => modules.get(name)?.(),
    /** All readable modules; stderr names each unreadable one. */
    all: async (): Promise<readonly ModuleDefinition[]> =>
      (await Promise.all([...modules].map(([name, load]) => load().catch(reportBroken(name))))).flat(),
    /** An example in YAML, as a step of a state; undefined if the module has none. */
    example: (name: string): string | undefined => {
      if (!own.names.includes(name)) return moduleExample(name);
      const { example } = own.load(name);
      return example && printYaml({ [name]: example }).trimEnd();
    },
  };
}

/** Reports a module that cannot be loaded, whose file must not hide the other modules. */
function reportBroken(name: string): (error: unknown) => [] {
  return (error) => {
    if (!(error instanceof KcoreError)) throw error;
    process.stderr.write(`${name} cannot be used: kcore check says why\n`);
    return [];
  };
}

/** The modules of the project itself; none without a project. */
export function ownModulesOf(project: string | undefined): OwnModules {
  return openOwnModules(placesOf(project));
}

/** The examples of one module, as the build collects them. */
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
 * The YAML example that a shipped module's doc comment opens with; undefined without one. The source tree has it in the
 * module's file; the bundle has no comments, so the build collects the examples.
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

/** The first block of YAML in a source file's comments, without their stars; undefined without one. */
export function exampleIn(source: string): string | undefined {
  const found = /```yaml\n([\s\S]*?)```/.exec(source)?.[1];
  return found
    ?.replaceAll(/^ ?\* ?/gm, "")
    .replace(/ ?\* ?$/, "")
    .trimEnd();
}
