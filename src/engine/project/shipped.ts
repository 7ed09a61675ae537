import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The package's own folder, absolute: `states/`, `orchestrate/`, `templates/` and `src/lab/files` of kcore lie under it.
 * It is the same in the source tree and in the bundle under `dist/`: the nearest folder upwards with a package.json.
 */
export function shippedRoot(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "package.json"))) return folder;
    if (folder === dirname(folder)) throw new Error("the kcore package has lost its package.json");
  }
}
