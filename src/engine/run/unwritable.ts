import { KcoreError, type Problem } from "#errors/problem.ts";

/** What a file system says when it takes nothing, and what that means. */
const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "the bastion's disk is full",
  EDQUOT: "the disk quota on the bastion is used up",
  EROFS: "the file system is read-only",
  EACCES: "this user may not write there",
};

/** Why nothing can be written below the folder; undefined: the error says something else. */
export function unwritable(folder: string, error: unknown): Problem | undefined {
  const { code = "", message } = error as NodeJS.ErrnoException;
  const reason = reasons[code];
  if (reason === undefined) return undefined;
  return {
    code: "RUN_RECORD_UNWRITABLE",
    message: `nothing can be recorded below ${folder}: ${reason}`,
    detail: message,
  };
}

/** Does what writes below the folder, before anything was begun. @throws KcoreError RUN_RECORD_UNWRITABLE */
export function recording<T>(folder: string, write: () => T): T {
  try {
    return write();
  } catch (error) {
    const problem = unwritable(folder, error);
    if (!problem) throw error;
    throw new KcoreError({ ...problem, hint: `free space or mend it; nothing was begun` }, { cause: error });
  }
}
