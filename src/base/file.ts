import { createHash, randomBytes } from "node:crypto";
import { constants, createReadStream, renameSync, rmSync, writeFileSync } from "node:fs";
import { access, open, readFile, rename, stat, unlink } from "node:fs/promises";
import { dirname } from "node:path";
import { pipeline } from "node:stream/promises";
import { KcoreError } from "#errors/problem.ts";
import { syncFolder } from "./folder.ts";

export interface FileOptions {
  /** The file's mode, without regard to the umask; 0600 by default. */
  readonly mode?: number;
}

export type FileContent = string | Uint8Array | AsyncIterable<string | Uint8Array>;

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;

/** Creates a file and flushes it; its mode is set before it has content. @throws NodeJS.ErrnoException EEXIST if the path exists, even as a link */
export async function createFile(
  path: string,
  content: FileContent,
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
 * When the promise resolves, content and name are flushed to the disk. `before` runs just before the rename. If it or a stream fails, the
 * old file stays.
 */
export async function replaceFile(
  path: string,
  content: FileContent,
  { mode, before }: FileOptions & { readonly before?: () => Promise<void> } = {},
): Promise<void> {
  const aside = asideOf(path);
  try {
    await createFile(aside, content, mode === undefined ? {} : { mode });
    await before?.();
    await rename(aside, path);
  } catch (error) {
    await unlink(aside).catch(() => undefined);
    throw withPath(path, aside, error);
  }
  await syncFolder(dirname(path));
}

/**
 * Moves a complete file to its path: flushes the file, renames it, flushes the name. For a file that a program or a transfer has
 * written on the same file system.
 */
export async function placeFile(complete: string, path: string): Promise<void> {
  const handle = await open(complete, constants.O_RDONLY | O_NOFOLLOW);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(complete, path);
  await syncFolder(dirname(path));
}

/**
 * Replaces a small file (0600) synchronously: a reader finds the old or the new content, even if this process dies. Nothing is flushed,
 * because a run with a thousand nodes would wait for the disk a thousand times; so a power cut may lose the content.
 */
export function replaceFileSync(path: string, content: string): void {
  const aside = asideOf(path);
  try {
    writeFileSync(aside, content, { mode: 0o600, flag: "wx" });
    renameSync(aside, path);
  } catch (error) {
    rmSync(aside, { force: true });
    throw withPath(path, aside, error);
  }
}

/** A temporary name beside the file, random, so that writers do not collide and an attacker cannot plant a link. */
function asideOf(path: string): string {
  return `${path}.${randomBytes(8).toString("hex")}.tmp`;
}

/** The error, whose message names `path` in place of the temporary name. */
function withPath(path: string, aside: string, error: unknown): unknown {
  if (error instanceof Error) error.message = error.message.replaceAll(aside, path);
  return error;
}

/**
 * Refuses a file or folder that a user other than this process's or root owns or may write; `secret`: also one that others
 * may read (S-20). A path that does not exist is accepted.
 * @throws KcoreError FILE_UNTRUSTED
 */
export async function refuseUntrusted(
  path: string,
  { secret = false }: { readonly secret?: boolean } = {},
): Promise<void> {
  const found = await ifThere(stat(path));
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

/** Whether a path exists, a link's target included. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

/** A text that changes when the file is replaced or written; `missing` if there is no such file. */
export function fileVersion(path: string): Promise<string> {
  return stat(path).then(
    ({ ino, mtimeMs, size }) => `${ino}:${mtimeMs}:${size}`,
    () => "missing",
  );
}

/** The SHA-256 of a file's bytes, in hex. @throws NodeJS.ErrnoException; the signal's reason */
export async function hashFile(path: string, signal?: AbortSignal): Promise<string> {
  return (await hashBytes(path, signal)).sha256;
}

/** The SHA-256 of a file's bytes, in hex, and their number: a log may have grown since. @throws as {@link hashFile} */
export async function hashBytes(path: string, signal?: AbortSignal): Promise<{ sha256: string; bytes: number }> {
  const hash = createHash("sha256");
  const stream = createReadStream(path, { highWaterMark: 1 << 20 });
  await pipeline(stream, hash, signal ? { signal } : {});
  return { sha256: hash.digest("hex"), bytes: stream.bytesRead };
}

/** The result of the work; undefined if it fails because a path is missing (ENOENT, ENOTDIR), even as a KcoreError's cause. */
export async function ifThere<Result>(work: Promise<Result>): Promise<Result | undefined> {
  try {
    return await work;
  } catch (error) {
    const { code } = (error instanceof KcoreError ? error.cause : error) as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw error;
  }
}

/** @throws KcoreError FILE_UNREADABLE */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `${path} cannot be read: ${reason}` }, { cause: error });
  }
}
