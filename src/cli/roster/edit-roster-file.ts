import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { RosterText } from "#engine/roster/roster-files.ts";

/** Changes the text of one roster file of a project and writes it as a whole, with the mode it had; a new one if need be. */
export async function editRosterFile(project: string, file: string, edit: (text: RosterText) => string): Promise<void> {
  const path = join(project, file);
  const text = await orIfNew(readFile(path, "utf8"), "");
  const edited = edit({ file, text });
  if (edited === text) return;
  const { mode } = await orIfNew<{ readonly mode: number }>(stat(path), { mode: 0o644 });
  const aside = `${path}.${randomBytes(4).toString("hex")}`;
  try {
    const handle = await open(aside, "wx", mode & 0o777);
    try {
      await handle.writeFile(edited);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await rename(aside, path);
  } finally {
    await rm(aside, { force: true });
  }
}

async function orIfNew<T>(reading: Promise<T>, otherwise: T): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise;
    throw error;
  }
}
