import { constants } from "node:fs";
import { lstat, open, stat } from "node:fs/promises";
import { join } from "node:path";

const busy = 5; // SQLITE_BUSY
/** The locked databases: the garbage collector would close an unreferenced one, and so release its lock. */
const lockedDatabases = new Set<object>();

/**
 * Locks a folder for this process, until the returned function is called or the process dies; undefined if another process has the
 * lock. The lock is the kernel's (fcntl(2)), on a file in the folder, so a user who may not enter the folder cannot take it. Node has
 * no API for such locks, but its SQLite takes one on a database, which stays empty here.
 */
export async function lockFolder(folder: string): Promise<(() => void) | undefined> {
  const file = join(folder, ".lock");
  await makeLockFile(file, folder);
  // Loaded here: only a process that locks a folder needs SQLite.
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
  lockedDatabases.add(database);
  return () => {
    if (lockedDatabases.delete(database)) database.close();
  };
}

/** Makes the lock file, 0600 under every umask. Root gives it to the folder's owner, who could not open a file of root's. */
async function makeLockFile(file: string, folder: string): Promise<void> {
  const { O_CREAT, O_NOFOLLOW, O_RDWR } = constants;
  // Before the lock is taken, because a process loses its locks on a file when it closes any descriptor of the file.
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
