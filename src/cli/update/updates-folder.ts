import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { ensurePrivateFolder } from "#base/folder.ts";

/** The folder, below a context's folder, of the updates that this machine signed or ran hooks for. */
function updatesRoot(contextFolder: string): string {
  return join(contextFolder, "updates");
}

/** The folder of an update on this machine, with its signed manifests and the output of its hooks. */
export async function updateFolder(contextFolder: string, name: string): Promise<string> {
  const folder = join(updatesRoot(contextFolder), name);
  await ensurePrivateFolder(updatesRoot(contextFolder));
  await ensurePrivateFolder(folder);
  return folder;
}

/** The names of updates that this machine signed or ran hooks for. */
export function knownUpdates(contextFolder: string): readonly string[] {
  return existsSync(updatesRoot(contextFolder)) ? readdirSync(updatesRoot(contextFolder)).toSorted() : [];
}
