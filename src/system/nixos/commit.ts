import { git } from "#base/git.ts";

/** Names that a command line may be too short for. */
const listed = ["--pathspec-from-file=-", "--pathspec-file-nul"];

/** `committed`; `staged`: there was other work in the repository, or git would not commit; `none`: no repository. */
export type Fate = "committed" | "staged" | "none";

/**
 * Commits these files of a project alone, where nothing else in its repository was changed. Otherwise they are only staged, which is enough
 * for Nix to see them. Never asks a question: a commit that needs a signature is left to the operator.
 */
export async function commitFiles(
  project: string,
  files: readonly string[],
  { isClean, message, signal }: { readonly isClean: boolean; readonly message: string; readonly signal: AbortSignal },
): Promise<Fate> {
  const input = files.join("\0");
  try {
    await git(project, ["add", ...listed], { signal, input });
  } catch {
    return "none";
  }
  if (!isClean) return "staged";
  try {
    if (await signs(project, signal)) return "staged";
    await git(project, ["commit", "--quiet", "--message", message, "--only", ...listed], { signal, input });
    return "committed";
  } catch {
    return "staged";
  }
}

/** Whether the project is in a repository without any change that is not committed, untracked files included. */
export async function isClean(project: string, signal: AbortSignal): Promise<boolean> {
  try {
    return (await git(project, ["status", "--porcelain", "--untracked-files=normal"], { signal })) === "";
  } catch {
    return false;
  }
}

/** Whether commits are signed here, for which a passphrase may be asked wherever the operator has a terminal or a screen. */
async function signs(project: string, signal: AbortSignal): Promise<boolean> {
  const words = ["config", "--type=bool", "--default=false", "--get", "commit.gpgSign"];
  return (await git(project, words, { signal })).trim() === "true";
}
