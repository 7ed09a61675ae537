import { link, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isAlive, markProcess, type ProcessMark } from "#engine/run/process-mark.ts";

/**
 * Takes the place of the one process of this machine that attends to an update; or tells which has it. Of one that was killed nothing stays
 * in the way.
 */
export async function takePlace(
  folder: string,
): Promise<{ readonly leave: () => Promise<void> } | { readonly taken: number }> {
  const file = join(folder, "attendant.json");
  for (;;) {
    if (await create(file)) return { leave: () => rm(file, { force: true }) };
    const holder = await readMark(file);
    if (holder && isAlive(holder)) return { taken: holder.pid };
    await rm(file, { force: true });
  }
}

/** Whole at once: nobody finds it without its mark. */
async function create(path: string): Promise<boolean> {
  const aside = `${path}.${process.pid}`;
  try {
    await writeFile(aside, JSON.stringify(markProcess(process.pid)), { mode: 0o600 });
    await link(aside, path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  } finally {
    await rm(aside, { force: true });
  }
}

async function readMark(path: string): Promise<ProcessMark | undefined> {
  try {
    return JSON.parse(await readFile(path, "utf8")) as ProcessMark;
  } catch {
    return undefined;
  }
}
