import { constants, existsSync, mkdirSync, statSync } from "node:fs";
import { chmod, lstat, open } from "node:fs/promises";
import { dirname } from "node:path";
import { KcoreError } from "#errors/problem.ts";

/**
 * Makes a folder and its parents. Not by Node's `recursive`: that loops for ever where an existing folder denies new ones, as /proc
 * does, and reports ENOENT on a read-only file system.
 * @throws NodeJS.ErrnoException
 */
export function makeFolderSync(path: string, mode = 0o700): void {
  try {
    mkdirSync(path, { mode });
  } catch (error) {
    // The folder may exist: another process made it meanwhile, or the file system is read-only.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
    const above = dirname(path);
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || existsSync(above)) throw error;
    makeFolderSync(above, mode);
    makeFolderSync(path, mode);
  }
}

/** Makes a folder whose path an operator gave, and its parents. @throws KcoreError USAGE when it cannot be made */
export async function makeFolder(path: string, { mode = 0o777 }: { readonly mode?: number } = {}): Promise<void> {
  try {
    makeFolderSync(path, mode);
  } catch (cause) {
    const { path: first = path, message } = cause as NodeJS.ErrnoException;
    throw new KcoreError(
      {
        code: "USAGE",
        message: `the folder ${first} cannot be made: ${message}`,
        hint: "give one below a folder that you may write to",
      },
      { cause },
    );
  }
}

/** Flushes a folder, so that names made or removed in it survive a power cut. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Makes a folder that only its owner may enter (0700 under every umask), or tightens the one that is there.
 * @throws KcoreError FILE_UNTRUSTED when the path is a link, no folder, or another user's.
 */
export async function ensurePrivateFolder(path: string): Promise<void> {
  await makeFolder(path, { mode: 0o700 });
  const found = await lstat(path);
  const owner = process.getuid?.() ?? found.uid;
  if (!found.isDirectory() || found.uid !== owner) {
    throw new KcoreError({
      code: "FILE_UNTRUSTED",
      message: `${path} is ${found.isDirectory() ? `owned by uid ${found.uid}` : "not a folder of its own"}, so secrets must not be kept there`,
      hint: `move it away, or make it a folder that belongs to uid ${owner}`,
    });
  }
  if ((found.mode & 0o777) !== 0o700) await chmod(path, 0o700);
}
