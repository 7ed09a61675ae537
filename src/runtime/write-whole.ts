import { randomUUID } from "node:crypto";
import { rename, rm, writeFile } from "node:fs/promises";

/** Never half a file under its name, also when it is written twice at once. */
export async function writeWhole(file: string, content: string | Uint8Array): Promise<void> {
  const aside = `${file}.${randomUUID()}.tmp`;
  try {
    await writeFile(aside, content, { mode: 0o600 });
    await rename(aside, file);
  } finally {
    await rm(aside, { force: true });
  }
}
