#!/bin/sh
# What each job does first: kcore in the version that is pinned, unless the cache has it, and the keys that the job was given.
set -eu
umask 077

# GitLab's runners check out files that everybody may write: kcore believes no such project, nor one in such a folder.
chmod -R go-w .
folder=$PWD
while [ "$folder" != / ]; do
  [ -k "$folder" ] || chmod go-w "$folder" || :
  folder=$(dirname "$folder")
done

# npm ci brings the Node that kcore is pinned to; the job's own only runs npm.
tool=.kcore/tool
if [ ! -x $tool/bin/kcore ] || [ "$(cat $tool/.version)" != "$KCORE_VERSION" ]; then
  rm -rf $tool
  git clone --quiet --depth 1 --branch "$KCORE_VERSION" "$KCORE_REPOSITORY" $tool
  (cd $tool && npm ci --no-audit --no-fund)
  echo "$KCORE_VERSION" >$tool/.version
fi
[ -z "${GITHUB_PATH:-}" ] || echo "$PWD/$tool/bin" >>"$GITHUB_PATH"

# A secret comes as text (GitHub) or as the path of a file (GitLab, type File). Neither stands in a command's arguments.
keep() {
  mkdir -p "$(dirname "$2")"
  if [ -f "$1" ]; then cat "$1"; else printf '%s\n' "$1"; fi >"$2"
}
[ -z "${KCORE_SSH_KEY:-}" ] || keep "$KCORE_SSH_KEY" "$HOME/.ssh/id_ed25519"
[ -z "${KCORE_AGE_KEY:-}" ] || keep "$KCORE_AGE_KEY" "$HOME/.config/kcore/age-identity.txt"

mkdir -p report
