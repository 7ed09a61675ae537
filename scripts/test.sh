#!/bin/sh
# npm test: set-up, then unit tests, the simulator, integration tests and a smoke test of the lab (real machines; root only).
# npm test -- --all: the long lab tests too, in two halves side by side. Ends with one line: N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit
sh scripts/set-up.sh tests || exit 1
PATH=$PWD/node_modules/.bin:$PATH
export PATH
results=$(mktemp -d)
logs=$(mktemp -d)
trap 'rm -rf "$results" "$logs"' EXIT
suites="unit sim integration smoke"
[ "${1:-}" != --all ] || suites="$suites lab"
status=0
run() {
  echo "== $1"
  npm run --silent "test:$1" -- --reporter scripts/report.cjs --reporter-option "output=$results/$1"
}
for suite in $suites; do
  case $suite in
    smoke | lab)
      if [ "$(id -u)" != 0 ]; then
        echo "== $suite: left out, its machines need root"
        continue
      fi
      ;;
  esac
  if [ "$suite" = lab ]; then
    # As long as one another: a virtual machine is one processor's work, most of the others is waiting.
    run vm >"$logs/vm" 2>&1 &
    machines=$!
    # What a shell starts aside hears no Ctrl-C.
    trap 'kill "$machines" 2>/dev/null' INT TERM
    run lab || status=1
    wait "$machines" || status=1
    cat "$logs/vm"
  else
    run "$suite" || status=1
  fi
done
node scripts/count.ts "$results" || status=1
exit $status
