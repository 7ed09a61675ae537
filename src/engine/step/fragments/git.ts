import { type Secret, secret } from "../secret.ts";
import { sh, type Sh } from "../sh.ts";

/** A repository that a node clones, and the credentials for it. */
export interface Remote {
  readonly url: string;
  /** A branch, a tag, a whole refs/…, a commit, or HEAD. */
  readonly ref: string;
  readonly depth?: number | undefined;
  readonly username?: string | undefined;
  readonly password?: Secret | undefined;
  readonly key?: Secret | undefined;
  readonly knownHosts?: string | undefined;
}

/** Whether a ref is the full hash of a commit, which always means the same commit. */
export function isCommit(ref: string): boolean {
  return /^([0-9a-f]{40}|[0-9a-f]{64})$/.test(ref);
}

/**
 * Makes git ask no questions, accept no unknown host key, and read the given secrets from the step's own files
 * (git-credential-store(1), ssh_config(5)). Defines `failed TEXT`, which refuses.
 */
export function withRemote({ url, username = "git", password, key, knownHosts }: Remote): Sh {
  const host = /^(https?):\/\/([^/]+)/.exec(url);
  return sh`umask 077
export GIT_TERMINAL_PROMPT=0 GIT_SSH_COMMAND="ssh -o BatchMode=yes -o StrictHostKeyChecking=yes"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_ASKPASS SSH_ASKPASS
${
  knownHosts === undefined
    ? sh``
    : sh`printf '%s\n' ${knownHosts.trim()} >"$K_TMP/known_hosts" || exit 1
GIT_SSH_COMMAND="$GIT_SSH_COMMAND -o GlobalKnownHostsFile=/dev/null -o UserKnownHostsFile='$K_TMP/known_hosts'"`
}
${
  key === undefined
    ? sh``
    : sh`printf '%s\n' ${secret(key.reveal().trim())} >"$K_TMP/key" || exit 1
GIT_SSH_COMMAND="$GIT_SSH_COMMAND -o IdentitiesOnly=yes -i '$K_TMP/key'"`
}
${
  password === undefined || host === null
    ? sh`git() { command git -c advice.detachedHead=false "$@"; }`
    : sh`printf '%s\n' ${secret(`${host[1]}://${encodeURIComponent(username)}:${encodeURIComponent(password.reveal())}@${host[2]}`)} >"$K_TMP/credentials" || exit 1
git() { command git -c advice.detachedHead=false -c credential.helper= -c credential.helper="store --file='$K_TMP/credentials'" "$@"; }`
}
umask 022
failed() { refuse GIT_FAILED "$1: "${url}"$K_NL$(cat "$K_TMP/err")"; }`;
}

/** Sets `new` to the ref's commit at the remote, and `full` to its whole name (empty for a commit); a branch wins over a tag. */
export function askRemote({ url, ref }: Remote): Sh {
  if (isCommit(ref)) return sh`new=${ref} full=`;
  const names = /^(HEAD$|refs\/)/.test(ref) ? [ref] : [`refs/tags/${ref}`, `refs/heads/${ref}`];
  return sh`git ls-remote -- ${url} ${names} ${names.map((name) => `${name}^{}`)} >"$K_TMP/refs" 2>"$K_TMP/err" || {
  ! unsure || exit 1
  failed "cannot be asked"
}
new= full=
for name in ${names}; do
  while read -r sum found; do
    # The commit of an annotated tag is listed after the tag.
    case $found in "$name" | "$name^{}") new=$sum full=$name ;; esac
  done <"$K_TMP/refs"
done
[ -n "$new" ] || { ! unsure || exit 1; : >"$K_TMP/err"; failed ${`there is no branch or tag ${ref}`}; }`;
}

/** In the repository: fetches `$new`. If the server refuses to send a commit by its hash, all branches and tags are fetched. */
export function fetchNew({ depth }: Remote): Sh {
  const shallow = depth === undefined ? sh`` : sh`--depth ${depth}`;
  return sh`case $full in
  refs/heads/*) set -- "+$full:refs/remotes/origin/\${full#refs/heads/}" ;;
  refs/tags/*) set -- "+$full:$full" ;;
  *) set -- "\${full:-$new}" ;;
esac
git cat-file -e "$new^{commit}" 2>/dev/null || git fetch -q --no-tags ${shallow} origin "$@" 2>"$K_TMP/err" ||
  { [ -z "$full" ] && git fetch -q origin '+refs/heads/*:refs/remotes/origin/*' '+refs/tags/*:refs/tags/*' 2>>"$K_TMP/err"; } ||
  failed "cannot be fetched"
git cat-file -e "$new^{commit}" 2>>"$K_TMP/err" || failed "there is no commit $new"`;
}

/** In the repository: sets `changed` to the newest commit that no remote has, and to at most 10 files that differ from HEAD. */
export const localChanges = sh`changed=$(git status --porcelain --untracked-files=no --ignore-submodules=none 2>"$K_TMP/err" | sed 10q)
[ ! -s "$K_TMP/err" ] || failed "cannot be looked at"
own=$(git rev-list -n 1 HEAD --not --remotes --tags --glob=refs/kcore 2>/dev/null)
[ -z "$own" ] || changed="commits of its own, the last $own$K_NL$changed"`;
