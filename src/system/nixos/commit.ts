import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** `committed`; `staged`: there was other work in the repository, or git would not commit; `none`: no repository. */
export type Fate = "committed" | "staged" | "none";

/**
 * Commits files of a project alone, where nothing else in its repository was changed; else they are only staged, which is what Nix needs to see
 * them. Never asks anybody: what has to be signed is left to who signs.
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
    if (await signs(project, signal)) return "staged";
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

/** Whether commits are signed here, for which a passphrase may be asked wherever the operator has a terminal or a screen. */
async function signs(project: string, signal: AbortSignal): Promise<boolean> {
  const words = ["config", "--type=bool", "--default=false", "--get", "commit.gpgSign"];
  return (await git(project, words, signal)).trim() === "true";
}

/** What names a repository, an index or files by the environment, as within git's hooks; it need not be the project's. */
const elsewhere =
  /^GIT_(DIR|COMMON_DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|PREFIX)$/;

async function git(project: string, words: readonly string[], signal: AbortSignal): Promise<string> {
  const own = Object.entries(process.env).filter(([name]) => !elsewhere.test(name));
  const env = { ...Object.fromEntries(own), GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "false" };
  const options = { signal, timeout: 60_000, maxBuffer: 64 << 20, env } as const;
  return (await promisify(execFile)("git", ["-C", project, ...words], options)).stdout;
}
