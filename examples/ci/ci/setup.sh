#!/bin/sh
# Each job runs this first: it installs the pinned version of kcore, unless the cache has it, and writes the job's keys.
set -eu
umask 077

# GitLab's runners check out files that all users may write: kcore believes no such project, and none in such a folder.
chmod -R go-w .
folder=$PWD
while [ "$folder" != / ]; do
  [ -k "$folder" ] || chmod go-w "$folder" || :
  folder=$(dirname "$folder")
done

# npm ci installs the Node that kcore pins; the job's own Node only runs npm.
tool=.kcore/tool
if [ ! -x $tool/bin/kcore ] || [ "$(cat $tool/.version)" != "$KCORE_VERSION" ]; then
  rm -rf $tool
  git clone --quiet --depth 1 --branch "$KCORE_VERSION" "$KCORE_REPOSITORY" $tool
  (cd $tool && npm ci --no-audit --no-fund)
  echo "$KCORE_VERSION" >$tool/.version
fi
[ -z "${GITHUB_PATH:-}" ] || echo "$PWD/$tool/bin" >>"$GITHUB_PATH"

# A secret is a text (GitHub) or the path of a file (GitLab, type File). Neither stands in a command's arguments.
keep() {
  mkdir -p "$(dirname "$2")"
  if [ -f "$1" ]; then cat "$1"; else printf '%s\n' "$1"; fi >"$2"
}
[ -z "${KCORE_SSH_KEY:-}" ] || keep "$KCORE_SSH_KEY" "$HOME/.ssh/id_ed25519"
[ -z "${KCORE_AGE_KEY:-}" ] || keep "$KCORE_AGE_KEY" "$HOME/.config/kcore/age-identity.txt"

mkdir -p report
