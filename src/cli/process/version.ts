import { readFileSync } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "#engine/project/shipped.ts";

/** The version in package.json. */
export function kcoreVersion(): string {
  const text = readFileSync(join(shippedRoot(), "package.json"), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
