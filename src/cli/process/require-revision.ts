import { git, GitFailed } from "#base/git.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { KcoreError } from "#errors/problem.ts";
import { readSettings } from "../project/project-settings.ts";
import { changedInGit } from "./git-state.ts";

const mostNamed = 10;

/**
 * Refuses a project whose revision is not as the request asks, or as the project asks of each run that may change nodes. A signature
 * vouches for the commit alone, so it asks for a clean project, too. @throws KcoreError PROJECT_DIRTY, COMMIT_UNSIGNED
 */
export async function requireRevision(project: string, request: RunRequest): Promise<void> {
  const { what, dryRun, requireClean: clean = false, requireSigned: signed = false } = request;
  const changesNodes = !dryRun && (what.kind === "orchestration" || what.kind === "state");
  const { runs } = changesNodes ? readSettings(project) : {};
  const mustSign = signed || runs?.requireSigned === true;
  if (mustSign || clean || runs?.requireClean === true) await requireClean(project);
  if (mustSign) await requireSigned(project, "HEAD");
}

/** @throws KcoreError PROJECT_DIRTY */
export async function requireClean(project: string): Promise<void> {
  const changed = await changedInGit(project).catch((error: Error) => error.message);
  if (changed.length === 0) return;
  const isKnown = typeof changed !== "string";
  const more = changed.length > mostNamed ? ` and ${changed.length - mostNamed} more` : "";
  throw new KcoreError({
    code: "PROJECT_DIRTY",
    message: isKnown
      ? `files of the project differ from its commit: ${changed.slice(0, mostNamed).join(", ")}${more}`
      : `git does not tell what differs from a commit: ${changed}`,
    hint: isKnown ? "commit them, or put them aside: git stash --include-untracked" : "git status",
  });
}

/** Refuses a commit unless `git verify-commit` trusts its signature, by the operator's own configuration of git. @throws KcoreError COMMIT_UNSIGNED */
export async function requireSigned(project: string, commit: string): Promise<void> {
  try {
    await git(project, ["verify-commit", commit]);
  } catch (cause) {
    if (!(cause instanceof GitFailed)) throw cause;
    const name = (await git(project, ["rev-parse", "--short=12", commit])).trim();
    throw new KcoreError(
      {
        code: "COMMIT_UNSIGNED",
        message: `commit ${name} has no signature that git trusts`,
        detail: cause.message,
        hint: `git verify-commit -v ${name}; trusted signers: gpg.ssh.allowedSignersFile, or gpg's keyring`,
      },
      { cause },
    );
  }
}
