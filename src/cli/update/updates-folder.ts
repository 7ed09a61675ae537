import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ensurePrivateFolder } from "#base/folder.ts";

/** In a context's folder: a folder for each update that was signed or attended to from here. */
function allOf(contextFolder: string): string {
  return join(contextFolder, "updates");
}

/** The folder of an update on this machine, with its signed manifests and the output of its hooks. */
export async function updateFolder(contextFolder: string, name: string): Promise<string> {
  const folder = join(allOf(contextFolder), name);
  await ensurePrivateFolder(allOf(contextFolder));
  await ensurePrivateFolder(folder);
  return folder;
}

/** The names of updates that were signed or attended to from here. */
export function knownUpdates(contextFolder: string): readonly string[] {
  return existsSync(allOf(contextFolder)) ? readdirSync(allOf(contextFolder)).toSorted() : [];
}
