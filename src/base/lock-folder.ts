import { constants } from "node:fs";
import { lstat, open, stat } from "node:fs/promises";
import { join } from "node:path";

const busy = 5; // SQLITE_BUSY
/** Keeps the locks: the garbage collector would close an unused one, and end its lock. */
const held = new Set<object>();

/**
 * Makes sure that only one process uses a folder, until the returned function is called or the process dies. The lock is the
 * kernel's, on a file in the folder (fcntl(2)), so a user who may not enter the folder cannot take it. Node locks no files itself;
 * its SQLite does so for a database, which stays empty here. undefined: another process has the lock.
 */
export async function lockFolder(folder: string): Promise<(() => void) | undefined> {
  const file = join(folder, ".lock");
  await makeLockFile(file, folder);
  // Not imported: only who locks a folder loads SQLite.
  const { DatabaseSync } = process.getBuiltinModule("node:sqlite");
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    // No journal, which would be a second file.
    database.exec("PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    if ((error as { errcode?: unknown }).errcode === busy) return undefined;
    throw error;
  }
  held.add(database);
  return () => {
    if (held.delete(database)) database.close();
  };
}

/** 0600 under every umask, and the folder's owner's: root must not make a lock that the folder's user cannot open. */
async function makeLockFile(file: string, folder: string): Promise<void> {
  const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants;
  // Closed before it is locked: a process loses its locks on a file when it closes any handle of it.
  if ((await lstat(file).catch(() => undefined))?.isFile() === true) return;
  const handle = await open(file, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  try {
    const { uid, gid } = await stat(folder);
    await handle.chmod(0o600);
    if (process.getuid?.() === 0) await handle.chown(uid, gid);
  } finally {
    await handle.close();
  }
}
