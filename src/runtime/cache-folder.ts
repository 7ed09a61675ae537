import { access, constants } from "node:fs/promises";
import { join } from "node:path";

/** Where runtimes that were built are kept: beside the program where that may be written, so that all its users share them; else with the user's own things. */
export async function cacheFolder(root: string, home: string): Promise<string> {
  const modules = join(root, "node_modules");
  try {
    await access(modules, constants.W_OK);
    return join(modules, ".cache", "kcore-runtime");
  } catch {
    return join(home, "cache", "runtime");
  }
}
