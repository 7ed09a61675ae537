import { GitFailed } from "#base/git.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { requireClean } from "../process/require-revision.ts";
import { dropWorktree, gitOf, judgeCommit } from "./judge-commit.ts";

/** The commit that the clone is at, if that commit passed all checks; and why the branch's newest commit is refused. */
interface Followed {
  readonly revision?: string;
  readonly refused: readonly Problem[];
}

/**
 * Fetches the branch and moves the clone forward to its newest commit. If a judgement refuses that commit, the clone stays at the commit
 * before. `vetted`: the last commit that passed.
 */
export async function followBranch(
  project: string,
  {
    branch,
    signed,
    vetted,
  }: { readonly branch: string; readonly signed: boolean; readonly vetted: string | undefined },
): Promise<Followed> {
  const ask = (...words: readonly string[]) => gitOf(project, ...words);
  const commitAt = async (name: string) => (await ask("rev-parse", "--verify", `${name}^{commit}`)).trim();
  let good: string | undefined;
  try {
    await dropWorktree(project);
    await requireClean(project);
    const present = (await ask("rev-parse", "--abbrev-ref", "HEAD")).trim();
    if (present !== branch) throw new GitFailed(`the clone is on “${present}”, not on “${branch}”`);
    const remote = `refs/remotes/origin/${branch}`;
    await ask("fetch", "--quiet", "--no-tags", "origin", `+refs/heads/${branch}:${remote}`);
    const [head, newest] = [await commitAt("HEAD"), await commitAt(remote)];
    if ((await ask("merge-base", head, newest).catch(() => "")).trim() !== head) throw diverged(branch, head, newest);
    // A pass that was killed, or an operator, may have moved the clone since.
    const refused = head === vetted ? [] : await judgeCommit(project, head, { signed }).then(() => [], problemsIn);
    if (refused.length === 0) good = head;
    if (head === newest) return { refused, ...omitUndefined({ revision: good }) };
    await judgeCommit(project, newest, { signed });
    await ask("merge", "--ff-only", "--quiet", newest);
    return { revision: newest, refused: [] };
  } catch (error) {
    return { refused: problemsIn(error), ...omitUndefined({ revision: good }) };
  }
}

/** The problems of an expected error. @throws any other error */
export function problemsIn(error: unknown): readonly Problem[] {
  if (error instanceof KcoreError) return error.problems;
  if (!(error instanceof GitFailed)) throw error;
  const hint = "git switch and git fetch origin, as the user of this command, show more";
  return [{ code: "RECONCILE_GIT", message: `git cannot follow the branch: ${error.message}`, hint }];
}

function diverged(branch: string, head: string, newest: string): KcoreError {
  return new KcoreError({
    code: "RECONCILE_DIVERGED",
    message: `${branch} was rewritten: its commit ${newest.slice(0, 12)} does not follow ${head.slice(0, 12)} of the clone`,
    hint: `look at both; to accept the branch as it is now: git reset --hard origin/${branch}`,
  });
}
