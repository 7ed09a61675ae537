import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { AbsolutePath } from "../step/fields.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { askRemote, fetchNew, isCommit, localChanges, withRemote, type Remote } from "../step/fragments/git.ts";
import type { NodeResource } from "../step/effects.ts";
import { Secret } from "../step/secret.ts";
import { sh, type Sh } from "../step/sh.ts";

const Url = z
  .string()
  .regex(
    /^((https?|ssh|git|file):\/\/[!-~]+|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:[!-~]+|\/[!-~]+)$/,
    "must be a URL of git: https://…, ssh://…, user@host:path, file://… or a path",
  )
  .refine((url) => !/^[a-z]+:\/\/[^/@]*:[^/@]*@/.test(url), "must not hold a password: give it as password");

const args = z
  .strictObject({
    path: AbsolutePath.refine((path) => path !== "/", "must not be /").describe("The folder of the clone."),
    url: Url.describe("Where the repository is, without a password."),
    ref: z
      .string()
      .regex(/^[A-Za-z0-9_][A-Za-z0-9._/@+-]*$/, "must be a branch, a tag or a commit")
      .refine((ref) => !/\.\.|@\{|\/$|\.lock$/.test(ref), "must be a branch, a tag or a commit")
      .default("HEAD")
      .describe("A branch, a tag, or a whole commit, which pins the clone; else what the remote calls HEAD."),
    depth: z.number().int().positive().optional().describe("The number of commits to fetch of the history; else all."),
    update: z
      .boolean()
      .default(true)
      .describe("Follow the ref; false: any commit will do once the repository is cloned."),
    submodules: z.boolean().default(false).describe("Bring the submodules, too."),
    force: z.boolean().default(false).describe("Changes and commits that were made on the node may be lost."),
    username: z
      .string()
      .regex(/^[!-~]+$/, "must be one word")
      .optional()
      .describe("For https: the user name; git unless given."),
    password: z
      .instanceof(Secret, { error: "must be secret" })
      .optional()
      .describe("For https: a password or token, as a secret."),
    key: z
      .instanceof(Secret, { error: "must be secret" })
      .optional()
      .describe("For ssh: a private key, as a secret; else those that the user has."),
    knownHosts: z
      .string()
      .min(1)
      .optional()
      .describe("For ssh: lines of a known_hosts file; else those that the node has."),
  })
  .refine(({ password, url }) => password === undefined || /^https?:/.test(url), "password is for https URLs")
  .refine(({ username, password }) => username === undefined || password !== undefined, "username goes with password")
  .refine(
    ({ update, ref }) => update || !isCommit(ref),
    "update: false is for branches and tags: a commit does not move",
  );

/**
 * ```yaml
 * git.cloned:
 *   path: /srv/example
 *   url: https://git.example.org/example.git
 *   ref: v1.2.3
 * ```
 * The clone's HEAD is detached, at the ref's commit on the remote. A new clone is made beside the folder and moved to the
 * folder as a whole. Changed files, and commits that only this clone has, are named and refused, unless `force` discards
 * them; untracked files stay. An unknown host key is never accepted. With the step key `runAs` the clone belongs to that
 * user, and git uses the user's SSH keys.
 */
export const gitCloned = defineModule({
  name: "git.cloned",
  summary: "Keeps a clone of a Git repository at a branch, tag or commit.",
  alsoKnownAs: ["git", "git.latest", "git.repo"],
  args,
  refusals: ["FILE_NOT_EMPTY", "GIT_CHANGED", "GIT_FAILED", ...fileRefusals],
  step: (given) => {
    const { path, url, ref, update, submodules, force } = given;
    const asksRemote = update && !isCommit(ref);
    const sourceResource: readonly NodeResource[] = url.startsWith("/") ? [{ is: "tree", path: url }] : [];
    const commit = isCommit(ref) ? ref : update ? `newest of ${ref}` : "any";
    const inRepository = (text: Sh): Sh => sh`cd ${path} || exit 1
${text}`;
    return {
      brings: true,
      effects: {
        writes: [{ is: "tree", path }],
        reads: [{ is: "tree", path }, ...sourceResource],
      },
      want: {
        kind: "repository",
        remote: url,
        commit,
        tree: "as checked out",
        ...(submodules && { submodules: "as checked out" }),
      },
      probe: sh`${kind(path)}
fact kind "$kind"
[ "$kind" = repository ] || exit 0
${withRemote(given)}
${inRepository(sh`fact remote "$(git config --get remote.origin.url)"
head=$(git rev-parse -q --verify 'HEAD^{commit}' 2>/dev/null)
${
  asksRemote
    ? sh`${askRemote(given)}
if [ "$head" = "$new" ]; then fact commit ${commit}; else fact commit "\${head:-none}, $new is there"; fi`
    : isCommit(ref)
      ? sh`fact commit "\${head:-none}"`
      : sh`if [ -n "$head" ]; then fact commit any; else fact commit none; fi`
}
fact head "\${head:-none}"
${localChanges}
if [ -z "$changed" ]; then fact tree "as checked out"; else fact tree "$changed"; fi
${
  submodules
    ? sh`others=$(git submodule status --recursive 2>&1 | grep -v '^ ')
if [ -z "$others" ]; then fact submodules "as checked out"; else fact submodules "$others"; fi`
    : sh``
}`)}`,
      guard: sh`guard_directory ${path}
${kind(path)}
case $kind in
  directory)
    others=$(find ${path} -mindepth 1 -maxdepth 1 | sed 10q)
    [ -z "$others" ] || refuse FILE_NOT_EMPTY ${`${path} holds something and is no repository: move it away`}"$K_NL$others"
    ;;
  repository)
    ${
      force
        ? sh``
        : sh`changed=$(had tree)
    case $changed in
      '' | "as checked out") ;;
      *) refuse GIT_CHANGED ${`${path} has changes of its own, which would be lost (force: true lets them go)`}"$K_NL$(printf '%b' "$changed")" ;;
    esac`
    }
    ;;
esac`,
      foresee: sh`foresee_place ${path} 4 0 - -
[ "$(had kind)" = repository ] || {
${withRemote(given)}
${askRemote(given)}
}`,
      apply: sh`${withRemote(given)}
${kind(path)}
${
  update
    ? askRemote(given)
    : sh`# An existing checkout stays.
new= full=
[ "$kind" != repository ] || new=$(git -C ${path} rev-parse -q --verify 'HEAD^{commit}' 2>/dev/null)
[ -n "$new" ] || {
${askRemote(given)}
}`
}
${checkOut(given)}
if [ "$kind" = repository ]; then
  ${inRepository(sh`git remote set-url origin ${url} 2>/dev/null || git remote add origin ${url} || exit 1
bring`)}
  exit
fi
parent_of ${path} 0
(
  k_enter ${path}
  for old in ./.kcore-"$k_key"-*; do [ ! -d "$old" ] || [ -L "$old" ] || (k_private "$old" && rm -rf ./t); done
  k_aside
  (git init -q ./t && cd ./t && git remote add origin ${url} && bring && sync) && mv -T ./t ../${path.slice(path.lastIndexOf("/") + 1)}
  status=$?
  rm -rf ./t
  k_leave_flushed "$status"
)`,
      tools: [{ command: "git", package: "git" }],
      timeout: 3600,
      stall: 300,
    };
  },
});

/** Sets `kind` to the result of kind_of, or to `repository` for a folder with a .git folder. */
function kind(path: string): Sh {
  return sh`kind_of ${path}
[ "$kind" != directory ] || [ ! -d ${path}/.git ] || kind=repository`;
}

/**
 * Defines `bring`: in the repository, fetches and checks out `$new`. refs/kcore records that commit, so that it never
 * counts as local work, even if the remote drops it.
 */
function checkOut({
  submodules,
  force,
  ...remote
}: Remote & { readonly submodules: boolean; readonly force: boolean }): Sh {
  return sh`bring() {
  ${fetchNew(remote)}
  git checkout -q --detach ${force ? sh`--force` : sh``} "$new" 2>"$K_TMP/err" || failed "cannot be checked out"
  git update-ref refs/kcore/checked-out "$new" || return 1
  ${submodules ? sh`git submodule sync -q --recursive && git submodule update -q --init --recursive ${force ? sh`--force` : sh``} ${remote.depth === undefined ? sh`` : sh`--depth ${remote.depth}`} 2>"$K_TMP/err" || failed "its submodules cannot be fetched"` : sh``}
}`;
}
