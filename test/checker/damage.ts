import { open, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";

/** Flips a bit of the text's first byte at its last place below a folder, as a rotting disk does. @throws Error when the text is not found */
export async function flipByte(folder: string, text: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  for (const entry of entries.filter((each) => each.isFile())) {
    const file = join(entry.parentPath, entry.name);
    const bytes = await readFile(file);
    const at = bytes.lastIndexOf(text);
    if (at < 0) continue;
    const handle = await open(file, "r+");
    try {
      await handle.write(Buffer.from([(bytes[at] ?? 0) ^ 1]), 0, 1, at);
      await handle.sync();
    } finally {
      await handle.close();
    }
    return;
  }
  throw new Error(`“${text}” stands in no file of ${folder}`);
}

/** Empties a folder; the folder itself stays, since a file system may be mounted on it. */
export async function emptyFolder(folder: string): Promise<void> {
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true });
}
