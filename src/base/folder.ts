import { randomBytes } from "node:crypto";
import { closeSync, constants, existsSync, fsyncSync, mkdirSync, openSync, statSync } from "node:fs";
import { chmod, lstat, mkdir, open, readdir, rename, rm, rmdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { KcoreError } from "#errors/problem.ts";

/**
 * Makes a folder and its parents. Node's `recursive` is not used: it loops for ever if an existing folder denies new ones, as /proc
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

/** Makes a folder whose path an operator chose, and its parents. @throws KcoreError USAGE if it cannot be made */
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

export function syncFolderSync(path: string): void {
  const fd = openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** The beginning of the names of unfinished folders, which a crash may leave. */
export const unfinishedPrefix = ".new-";

type Fill = (fresh: string) => Promise<unknown>;

export interface FolderOptions {
  /** The folder's mode, within the umask; 0700 by default. */
  readonly mode?: number;
}

/**
 * Makes a folder as a whole: `fill` gets an empty folder beside the path, and has to flush the files that it writes there. After a crash at
 * any moment the path has all of the content, or does not exist. An empty folder at the path is replaced.
 * @throws NodeJS.ErrnoException ENOTEMPTY or EEXIST if the path is a folder with contents, ENOTDIR if it is a file; an error of `fill`
 */
export async function createFolder(path: string, fill: Fill, options: FolderOptions = {}): Promise<void> {
  await placeFolder(path, fill, { ...options, moveFresh: (fresh) => rename(fresh, path) });
}

/**
 * As `createFolder`, but replaces a former folder: a reader finds the former content or the new one, and for a moment none. A crash in
 * that moment leaves the former folder in an unfinished folder beside the path.
 */
export async function replaceFolder(path: string, fill: Fill, options: FolderOptions = {}): Promise<void> {
  const moveFresh = async (fresh: string): Promise<void> => {
    const former = join(dirname(fresh), "former");
    await rename(path, former).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
    try {
      await rename(fresh, path);
    } catch (error) {
      await rename(former, path).catch(() => undefined);
      throw error;
    }
    await rm(former, { recursive: true, force: true });
  };
  await placeFolder(path, fill, { ...options, moveFresh });
}

async function placeFolder(
  path: string,
  fill: Fill,
  { mode = 0o700, moveFresh }: FolderOptions & { readonly moveFresh: (fresh: string) => Promise<void> },
): Promise<void> {
  const aside = join(dirname(path), `${unfinishedPrefix}${randomBytes(8).toString("hex")}`);
  const fresh = join(aside, "fresh");
  await mkdir(aside, { mode: 0o700 });
  try {
    await mkdir(fresh, { mode });
    await fill(fresh);
    await syncFolders(fresh);
    await moveFresh(fresh);
    await syncFolder(dirname(path));
  } finally {
    await rm(fresh, { recursive: true, force: true });
    // Fails while `aside` holds a former folder that could not be put back.
    await rmdir(aside).catch(() => undefined);
  }
}

async function syncFolders(path: string): Promise<void> {
  for (const entry of await readdir(path, { withFileTypes: true }))
    if (entry.isDirectory()) await syncFolders(join(path, entry.name));
  await syncFolder(path);
}

/**
 * Makes a folder that only its owner may enter (0700 under every umask), or sets an existing folder's mode so.
 * @throws KcoreError FILE_UNTRUSTED when the path is a link to a folder, or another user's; USAGE when no folder can be made
 */
export async function ensurePrivateFolder(path: string): Promise<void> {
  await makeFolder(path, { mode: 0o700 });
  const found = await lstat(path);
  const owner = process.getuid?.() ?? found.uid;
  if (!found.isDirectory() || found.uid !== owner) {
    throw new KcoreError({
      code: "FILE_UNTRUSTED",
      message: `${path} is ${found.isDirectory() ? `owned by uid ${found.uid}` : "a link"}, so secrets must not be kept there`,
      hint: `move it away, or make it a folder that belongs to uid ${owner}`,
    });
  }
  if ((found.mode & 0o777) !== 0o700) await chmod(path, 0o700);
}
