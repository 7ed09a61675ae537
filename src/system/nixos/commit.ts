import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** `committed`; `staged`: there was other work in the repository, or git would not commit; `none`: no repository. */
export type Fate = "committed" | "staged" | "none";

/**
 * Commits files of a project alone, where nothing else in its repository was changed; else they are only staged, which is what Nix needs to see
 * them. Never asks anybody.
 */
export async function commitFiles(
  project: string,
  files: readonly string[],
  { isClean, message, signal }: { readonly isClean: boolean; readonly message: string; readonly signal: AbortSignal },
): Promise<Fate> {
  try {
    await git(project, ["add", "--", ...files], signal);
  } catch {
    return "none";
  }
  if (!isClean) return "staged";
  try {
    await git(project, ["commit", "--quiet", "--message", message, "--", ...files], signal);
    return "committed";
  } catch {
    return "staged";
  }
}

/** Whether the project is in a repository without any change that is not committed, untracked files included. */
export async function isClean(project: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await git(project, ["status", "--porcelain", "--untracked-files=normal"], signal)) === "";
  } catch {
    return false;
  }
}

async function git(project: string, words: readonly string[], signal: AbortSignal): Promise<string> {
  const env = { ...process.env, GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "false" };
  const options = { signal, timeout: 60_000, maxBuffer: 64 << 20, env } as const;
  return (await promisify(execFile)("git", ["-C", project, ...words], options)).stdout;
}
