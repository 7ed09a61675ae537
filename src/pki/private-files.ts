import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { chmod, lstat, open, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import { makeFolder } from "./make-folder.ts";

export interface FileOptions {
  /** The file's mode whatever the umask; 0600 unless told otherwise. */
  readonly mode?: number;
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;

/** Creates a file that must not exist yet (also not as a link), with its mode set before it has content, and flushes it. */
export async function createFile(
  path: string,
  content: string | Uint8Array,
  { mode = 0o600 }: FileOptions = {},
): Promise<void> {
  const handle = await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  try {
    await handle.chmod(mode);
    await handle.writeFile(content);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Replaces a file as a whole: after a crash at any moment the old or the new content is there, never a mixture.
 * When the promise resolves, content and name are flushed to the disk.
 */
export async function replaceFile(
  path: string,
  content: string | Uint8Array,
  { mode = 0o600, before }: FileOptions & { readonly before?: () => Promise<void> } = {},
): Promise<void> {
  // A random name: at a fixed one somebody could plant a link, and two writers would meet.
  const aside = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  try {
    await createFile(aside, content, { mode });
    await before?.();
    await rename(aside, path);
  } catch (error) {
    await unlink(aside).catch(() => undefined);
    if (error instanceof Error) error.message = error.message.replaceAll(aside, path);
    throw error;
  }
  await syncFolder(dirname(path));
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
 * Makes a folder that only its owner may enter (0700 whatever the umask), or tightens the one that is there.
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

/**
 * Refuses a file or folder that somebody else than its user or root could have written, and with `secret` one that somebody
 * else could have read (S-20). One that is not there is nobody's.
 * @throws KcoreError FILE_UNTRUSTED
 */
export async function refuseUntrusted(
  path: string,
  { secret = false }: { readonly secret?: boolean } = {},
): Promise<void> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (!found) return;
  const owner = process.getuid?.() ?? found.uid;
  const refuse = (reason: string, hint: string): never => {
    throw new KcoreError({ code: "FILE_UNTRUSTED", message: `${path} is not used: ${reason}`, hint });
  };
  if (found.uid !== owner && found.uid !== 0)
    refuse(`it belongs to uid ${found.uid}`, `look at it; then: chown ${owner} ${path}`);
  if ((found.mode & 0o022) !== 0) refuse("others may write it", `look at it; then: chmod go-w ${path}`);
  if (secret && (found.mode & 0o077) !== 0)
    refuse("others may read it", `chmod 600 ${path}; others may have its content by now`);
}

/** A text file that must be there. @throws KcoreError FILE_UNREADABLE */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `${path} cannot be read: ${reason}` }, { cause: error });
  }
}
