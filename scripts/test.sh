#!/bin/sh
# npm test: set-up, then unit and integration tests and the lab's (real machines; root only). Ends with one line:
# N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.."
sh scripts/set-up.sh tests || exit 1
PATH=$PWD/node_modules/.bin:$PATH
export PATH
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
status=0
for suite in unit integration lab; do
  if [ "$suite" = lab ] && [ "$(id -u)" != 0 ]; then
    echo "== lab: skipped, its machines need root"
    continue
  fi
  echo "== $suite"
  npm run --silent "test:$suite" -- --reporter scripts/report.cjs --reporter-option "output=$results/$suite" || status=1
done
node scripts/count.ts "$results" || status=1
exit $status
