import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** Makes a folder and those above it. Node's own way says ENOENT where the file system is read-only or a quota is used up. @throws NodeJS.ErrnoException */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT") throw error;
    makeFolder(dirname(folder));
    mkdirSync(folder, { mode: 0o700 });
  }
}
