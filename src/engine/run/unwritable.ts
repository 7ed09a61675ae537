import { KcoreError, type Problem } from "#errors/problem.ts";

/** Error codes of a failed write, with their causes. */
export const writeFailures: Readonly<Record<string, string>> = {
  ENOSPC: "the bastion's disk is full",
  EDQUOT: "the disk quota on the bastion is used up",
  EROFS: "the file system is read-only",
  EACCES: "this user may not write there",
};

/** Why the run cannot write below the folder; undefined for any other error. */
export function recordUnwritable(folder: string, error: unknown): Problem | undefined {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const reason = writeFailures[code];
  if (reason === undefined) return undefined;
  return {
    code: "RUN_RECORD_UNWRITABLE",
    message: `nothing can be recorded below ${folder}: ${reason}`,
    detail: message,
  };
}

/** Runs `write`, which writes below the folder before a run starts anything. @throws KcoreError RUN_RECORD_UNWRITABLE; other errors of `write` */
export function reportUnwritable<T>(folder: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    const problem = recordUnwritable(folder, error);
    if (!problem) throw error;
    throw new KcoreError(
      { ...problem, hint: "free space, or make the folder writable; nothing was started" },
      { cause: error },
    );
  }
}

/** The hint for a run whose record cannot be written. */
export function roomHint({ path, id }: { readonly path: string; readonly id: string }): string {
  return `free space below ${path}, then “kcore runs resume ${id}”`;
}
