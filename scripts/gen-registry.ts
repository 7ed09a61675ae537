/** `npm run gen:registry`: writes src/engine/modules/registry.ts from the files beside it. */
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const modulesFolder = fileURLToPath(new URL("../src/engine/modules/", import.meta.url));
const registryFile = "registry.ts";

/** Each module's three spellings: `lvm.volume_group`, `lvm-volume-group.ts`, `lvmVolumeGroup`. */
export interface ModuleNames {
  readonly name: string;
  readonly file: string;
  readonly symbol: string;
}

/** The first part of a module's name is one word, with these exceptions. */
const families = ["authorized-key", "kernel-module"];

export function namesOf(file: string): ModuleNames {
  const base = file.replace(/\.ts$/, "");
  const family = families.find((words) => base.startsWith(`${words}-`)) ?? base.slice(0, base.indexOf("-"));
  return {
    name: `${family}.${base.slice(family.length + 1)}`.replaceAll("-", "_"),
    file,
    symbol: base.replace(/-([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
  };
}

export function listModules(): ModuleNames[] {
  return readdirSync(modulesFolder)
    .filter((file) => file.endsWith(".ts") && file !== registryFile)
    .sort()
    .map(namesOf);
}

/** The registry's text; modules are loaded only when a state uses them. */
export function registryText(modules: readonly ModuleNames[]): string {
  const entries = modules.map(
    ({ name, file, symbol }) => `  ["${name}", async () => (await import("./${file}")).${symbol}],\n`,
  );
  return `// Made by \`npm run gen:registry\` from the files in this folder; do not edit.
import type { ModuleDefinition } from "../step/define.ts";

/** Every module by the name that states use, loaded on first use. */
export const registry: ReadonlyMap<string, () => Promise<ModuleDefinition>> = new Map<
  string,
  () => Promise<ModuleDefinition>
>([
${entries.join("")}]);
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  writeFileSync(join(modulesFolder, registryFile), registryText(listModules()));
