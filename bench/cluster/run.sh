#!/bin/sh
# npm run bench:cluster [-- PART,…]: the cluster beside etcd (Debian's), Yjs and Automerge (npm's), ratios in one run.
set -eu
cd "$(dirname "$0")/../.."
command -v etcd >/dev/null || { echo "bench:cluster needs etcd: apt-get install etcd-server" >&2; exit 1; }
[ -d bench/cluster/peers/node_modules ] || npm ci --prefix bench/cluster/peers --ignore-scripts --no-audit --no-fund
npm run --silent build >/dev/null
if [ $# = 0 ]; then echo "== the store beside its disk"; node bench/store.ts; fi
echo "== the cluster"
KCORE_NODE_PROGRAM=$PWD/dist/node-main.js exec node --disable-warning=ExperimentalWarning --expose-gc bench/cluster/main.ts "$@"
