import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "#engine/project/shipped.ts";

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
