import { mkdirSync } from "node:fs";
import { dirname } from "node:path";

/** Makes a folder and those above it. Node's `recursive` would say ENOENT for a read-only file system or a used-up quota. @throws NodeJS.ErrnoException */
export function makeFolder(folder: string, hasParent = false): void {
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") return;
    if (code !== "ENOENT" || hasParent) throw error;
    makeFolder(dirname(folder));
    // Another process may make the folder at the same time.
    makeFolder(folder, true);
  }
}
