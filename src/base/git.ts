import { run, type ProcessOptions } from "./process.ts";

/** Variables that point git at another repository, as in git's hooks (git rev-parse --local-env-vars). */
const repositoryVariables =
  /^GIT_(DIR|COMMON_DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|PREFIX|GRAFT_FILE|SHALLOW_FILE|IMPLICIT_WORK_TREE)$/;

/** Git exited with a code other than 0, or was killed; the message is git's stderr, or the reason if that is empty. */
export class GitFailed extends Error {}

/**
 * Runs git in a folder's own repository, without regard to GIT_DIR and its kin, and returns its stdout. Git prompts for no password and opens
 * no editor. @throws GitFailed; the signal's reason
 */
export async function git(folder: string, words: readonly string[], options: ProcessOptions = {}): Promise<string> {
  const own = Object.entries(process.env).filter(([name]) => !repositoryVariables.test(name));
  const env = { ...Object.fromEntries(own), GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "false", ...options.env };
  // SIGTERM lets git remove its lock files.
  const ended = await run(["git", "-C", folder, ...words], { limitMs: 60_000, graceMs: 5_000, ...options, env });
  if (ended.code === 0) return ended.stdout;
  const why = ended.stopped === "time" ? "it took too long" : `it ended with ${ended.signal ?? ended.code}`;
  throw new GitFailed(ended.stderr.trim() || why);
}
