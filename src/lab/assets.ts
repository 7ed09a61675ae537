import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The folder of the lab's own sh files and of the layer that every Debian node gets.
 * It is found from the package's root, because the shipped command line is one bundle in `dist/`.
 */
export function assetFolder(): string {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const assets = join(folder, "src", "lab", "files");
    if (existsSync(assets)) return assets;
    if (folder === dirname(folder)) throw new Error("src/lab/files is missing from this kcore package");
  }
}
