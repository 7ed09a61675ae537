import { buffer } from "node:stream/consumers";
import type { RunTasks } from "#base/tasks.ts";
import { readBytes } from "#engine/yaml/regular-file.ts";
import { resolveLayouts } from "./resolve-layouts.ts";
import { readManifests, type Manifest } from "./read-manifests.ts";

/** The manifests of files, `-` for standard input, with layouts in Nix evaluated. @throws KcoreError as `readBytes`, `readManifests` and `resolveLayouts` */
export async function readManifestFiles(files: readonly string[], tasks: RunTasks): Promise<readonly Manifest[]> {
  const texts: { readonly file: string; readonly bytes: Uint8Array }[] = [];
  for (const file of files) texts.push({ file, bytes: file === "-" ? await buffer(process.stdin) : readBytes(file) });
  return resolveLayouts(
    texts.flatMap(({ file, bytes }) => readManifests(file, bytes)),
    tasks,
  );
}
