#!/bin/sh
# npm test: set-up, then unit tests, simulators, integration tests and a smoke test of the lab (real machines; root only).
# npm test -- --all: the whole lab, and the checks. Other words go to scripts/tests/main.ts (--help). Ends with one line:
# N passed, N failed, N skipped.
set -u
cd "$(dirname "$0")/.." || exit
sh scripts/set-up.sh tests || exit 1
PATH=$PWD/node_modules/.bin:$PATH
export PATH
if [ "${1:-}" = --all ]; then
  shift
  set -- unit sim integration smoke lab vm checks "$@"
fi
exec node scripts/tests/main.ts "$@"
