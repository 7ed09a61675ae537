/**
 * Calls `start` with the folder as working directory, so that a socket in it has a short path: the path of a Unix socket
 * has no more than 107 bytes (unix(7)), a project's may be longer. `start` must have done its system call when it
 * returns, as listening and connecting on Unix sockets have.
 */
export function inWorkingFolder<T>(folder: string, start: () => T): T {
  const before = process.cwd();
  process.chdir(folder);
  try {
    return start();
  } finally {
    process.chdir(before);
  }
}
