import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "#engine/project/shipped.ts";

/**
 * The YAML example that a module's doc comment opens with. In the source tree it is read from the module's file; the
 * bundle has no comments, so the build collects them.
 */
export function moduleExample(name: string): string | undefined {
  const source = join(shippedRoot(), "src", "engine", "modules", `${name.replaceAll(/[._]/g, "-")}.ts`);
  if (existsSync(source)) return exampleIn(readFileSync(source, "utf8"));
  const collected = join(shippedRoot(), "dist", "module-examples.json");
  return existsSync(collected)
    ? (JSON.parse(readFileSync(collected, "utf8")) as Record<string, string>)[name]
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
