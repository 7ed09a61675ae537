import { mkdir, open, rename } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a file so that it is there whole or not at all, even if this process is killed. */
export async function writeAside(path: string, text: string, mode = 0o600): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const aside = `${path}.${process.pid}.new`;
  const file = await open(aside, "w", mode);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(aside, path);
}
