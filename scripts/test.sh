#!/bin/sh
# npm test: set-up, then unit tests, the simulator, integration tests and a smoke test of the lab (real machines; root only).
# npm test -- --all: the long lab tests too. Ends with one line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit
sh scripts/set-up.sh tests || exit 1
PATH=$PWD/node_modules/.bin:$PATH
export PATH
results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
suites="unit sim integration smoke"
[ "${1:-}" != --all ] || suites="$suites lab"
status=0
for suite in $suites; do
  case $suite in
    smoke | lab)
      if [ "$(id -u)" != 0 ]; then
        echo "== $suite: left out, its machines need root"
        continue
      fi
      ;;
  esac
  echo "== $suite"
  npm run --silent "test:$suite" -- --reporter scripts/report.cjs --reporter-option "output=$results/$suite" || status=1
done
node scripts/count.ts "$results" || status=1
exit $status
