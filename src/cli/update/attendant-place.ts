import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lockFolder } from "#base/lock-folder.ts";

/**
 * Takes the place of the one process of this machine that attends to an update; or tells which has it, as far as it has said so. Of one
 * that was killed nothing stays in the way.
 */
export async function takePlace(
  folder: string,
): Promise<{ readonly leave: () => void } | { readonly taken: number | undefined }> {
  const file = join(folder, "attendant.pid");
  const leave = await lockFolder(folder);
  if (!leave) return { taken: await readPid(file) };
  await writeFile(file, `${process.pid}\n`, { mode: 0o600 });
  return { leave };
}

async function readPid(path: string): Promise<number | undefined> {
  const text = await readFile(path, "utf8").catch(() => "");
  return Number.parseInt(text, 10) || undefined;
}
