import { existsSync, realpathSync } from "node:fs";
import { dirname, join } from "node:path";
import { git } from "#base/git.ts";

interface GitState {
  readonly revision?: string;
  readonly dirty?: boolean;
}

/** The project's commit, and whether files differ from it; `dirty` is absent if git cannot tell. Empty outside of git. */
export async function gitState(project: string): Promise<GitState> {
  if (!mayBeUnderGit(realPath(project))) return {};
  try {
    return readStatus(await askStatus(project, "--porcelain=v2", "--branch", "--no-ahead-behind"));
  } catch {
    // git status fails with too many or unreadable files; the commit may be known all the same.
    const revision = await ask(project, "rev-parse", "HEAD").catch(() => undefined);
    return revision === undefined ? {} : { revision: revision.trim() };
  }
}

/** The files of a project that differ from its commit, new ones too, by their paths in the repository. @throws GitFailed */
export async function changedInGit(project: string): Promise<readonly string[]> {
  const text = await askStatus(project, "--porcelain", "-z", "--no-renames");
  return text.split("\0").flatMap((entry) => (entry === "" ? [] : entry.slice(3)));
}

function askStatus(project: string, ...format: readonly string[]): Promise<string> {
  return ask(project, "--no-optional-locks", "status", ...format, "--untracked-files=normal", "--", ".");
}

/** Asks git; reading the state must run neither hooks nor monitors of the repository. */
function ask(project: string, ...words: readonly string[]): Promise<string> {
  return git(project, ["-c", "core.fsmonitor=false", ...words], { env: process.env, limitMs: 5000 });
}

/** Reads “Porcelain Format Version 2” of git-status(1), whose lines about the branch begin with #. */
function readStatus(text: string): GitState {
  const revision = /^# branch\.oid ([0-9a-f]+)$/m.exec(text)?.[1];
  return { ...(revision === undefined ? {} : { revision }), dirty: /^[^#]/m.test(text) };
}

function realPath(project: string): string {
  try {
    return realpathSync(project);
  } catch {
    return project;
  }
}

/** Whether git could find a repository from here: searching takes less than starting a git that finds none. */
function mayBeUnderGit(folder: string): boolean {
  if (process.env["GIT_DIR"] !== undefined) return true;
  if (existsSync(join(folder, ".git")) || existsSync(join(folder, "HEAD"))) return true;
  const above = dirname(folder);
  return above !== folder && mayBeUnderGit(above);
}
