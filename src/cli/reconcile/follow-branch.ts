import { git, GitFailed } from "#base/git.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { findProblems } from "../check/find-problems.ts";
import { requireClean, requireSigned } from "../process/require-revision.ts";

export interface FollowOptions {
  readonly project: string;
  readonly branch: string;
  /** Whether a commit must have a signature that git trusts. */
  readonly signed: boolean;
  /** The last commit that passed all checks, if there was one. */
  readonly vetted: string | undefined;
}

export interface Followed {
  /** The commit that the clone is at; undefined unless that commit passed all checks. */
  readonly revision?: string;
  /** The reasons why the branch's newest commit is refused. */
  readonly refused: readonly Problem[];
}

/**
 * Fetches the branch and moves the clone forward to its newest commit. If that commit does not pass all checks, the clone stays at the commit
 * before. @throws KcoreError PROJECT_DIRTY, RECONCILE_GIT, RECONCILE_DIVERGED: then nothing may be applied
 */
export async function followBranch({ project, branch, signed, vetted }: FollowOptions): Promise<Followed> {
  // A merge runs hooks, which a clone for kcore must not need.
  const ask = (...words: readonly string[]) => git(project, ["-c", "core.hooksPath=/dev/null", ...words]);
  const commitAt = async (name: string) => (await ask("rev-parse", "--verify", `${name}^{commit}`)).trim();
  try {
    await requireClean(project);
    const present = (await ask("rev-parse", "--abbrev-ref", "HEAD")).trim();
    if (present !== branch) throw new GitFailed(`the clone is on “${present}”, not on “${branch}”`);
    const remote = `refs/remotes/origin/${branch}`;
    await ask("fetch", "--quiet", "--no-tags", "origin", `+refs/heads/${branch}:${remote}`);
    const [head, newest] = [await commitAt("HEAD"), await commitAt(remote)];
    if ((await ask("merge-base", head, newest).catch(() => "")).trim() !== head) throw diverged(branch, head, newest);
    if (head === newest && head === vetted) return { revision: head, refused: [] };
    if (signed) await requireSigned(project, newest);
    if (head !== newest) await ask("merge", "--ff-only", "--quiet", newest);
    const refused = await findProblems(project).then(
      ({ problems }) => problems,
      (error: unknown) => problemsIn(error),
    );
    if (refused.length === 0) return { revision: newest, refused };
    // Nothing is lost: the clone was clean.
    await ask("reset", "--hard", "--quiet", head);
    return { refused, ...(head === vetted && head !== newest && { revision: head }) };
  } catch (error) {
    if (error instanceof GitFailed) throw new KcoreError(gitProblem(error), { cause: error });
    if (!(error instanceof KcoreError) || error.problems[0]?.code !== "COMMIT_UNSIGNED") throw error;
    // An unsigned commit never enters the clone.
    const head = await commitAt("HEAD");
    return { refused: error.problems, ...(head === vetted && { revision: head }) };
  }
}

function problemsIn(error: unknown): readonly Problem[] {
  if (error instanceof KcoreError) return error.problems;
  throw error;
}

function gitProblem({ message }: GitFailed): Problem {
  const hint = "git switch and git fetch origin, as the user of this command, show more";
  return { code: "RECONCILE_GIT", message: `git cannot follow the branch: ${message}`, hint };
}

function diverged(branch: string, head: string, newest: string): KcoreError {
  return new KcoreError({
    code: "RECONCILE_DIVERGED",
    message: `${branch} was rewritten: its commit ${newest.slice(0, 12)} does not follow ${head.slice(0, 12)} of the clone`,
    hint: `look at both; to accept the branch as it is now: git reset --hard origin/${branch}`,
  });
}
