import { rm } from "node:fs/promises";
import { join } from "node:path";
import { git, GitFailed } from "#base/git.ts";
import { makeIgnoredFolder } from "#engine/run/run-folder.ts";
import { statesOf } from "#engine/states/open-states.ts";
import { KcoreError } from "#errors/problem.ts";
import { findProblems } from "../check/find-problems.ts";
import { workOf } from "../drift/look-for-drift.ts";
import { requireSigned } from "../process/require-revision.ts";
import { placesOf } from "../project/find-project.ts";
import { reconcileSettings } from "../project/project-settings.ts";

/**
 * Judges a commit in a worktree of its own, so that the clone stays as it is: the signature if it must be `signed`, the settings and the
 * work of reconcile, all that `kcore check` finds. @throws KcoreError with the problems; GitFailed
 */
export async function judgeCommit(project: string, commit: string, { signed }: { signed: boolean }): Promise<void> {
  if (signed) await requireSigned(project, commit);
  const worktree = await dropWorktree(project);
  try {
    await gitOf(project, "worktree", "add", "--quiet", "--detach", worktree, commit);
    const folder = join(worktree, (await gitOf(project, "rev-parse", "--show-prefix")).replace(/\n$/, ""));
    const { problems } = await findProblems(folder);
    if (problems.length > 0) throw new KcoreError(problems);
    // A pass reads these before it fetches: without them no later commit could mend the project.
    const { what } = workOf(folder, reconcileSettings(folder));
    if (what.kind === "state") for (const name of what.names) statesOf(placesOf(folder)).load(name);
  } finally {
    await dropWorktree(project);
  }
}

/** Removes the worktree, also one that a killed pass left; returns its path. */
export async function dropWorktree(project: string): Promise<string> {
  const worktree = join(makeIgnoredFolder(project, "reconcile"), "commit");
  await rm(worktree, { recursive: true, force: true });
  await gitOf(project, "worktree", "remove", "--force", "--force", worktree).catch((error: unknown) => {
    // Git knows no such worktree.
    if (!(error instanceof GitFailed)) throw error;
  });
  return worktree;
}

/** Git without the repository's hooks, which a clone for kcore must not need. */
export function gitOf(project: string, ...words: readonly string[]): Promise<string> {
  return git(project, ["-c", "core.hooksPath=/dev/null", ...words]);
}
