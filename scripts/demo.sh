#!/bin/sh
# npm run demo: set-up, a lab of two real machines on this one, a cluster's CA, and deploy_node on both. Everything of
# it lies in demo/ (and the lab's own folder); run again it finds all in order.
set -eu
cd "$(dirname "$0")/.."
if [ "$(id -u)" != 0 ]; then
  echo "demo: its machines are systemd-nspawn containers, which need root: run it as root or with sudo" >&2
  exit 2
fi
sh scripts/set-up.sh
root=$PWD
kcore() { "$root/bin/kcore" "$@"; }
say() { printf '\n== %s\n' "$*"; }

say "two machines: kcore lab up 2 --name demo"
kcore lab up 2 --name demo

mkdir -p demo
cd demo
[ -d roster ] || kcore init . --empty >/dev/null
say "their roster, host keys pinned: kcore lab roster --name demo --out roster/lab.yaml"
kcore lab roster --name demo --out roster/lab.yaml
cat >./env <<ENV
# . ./env   makes kcore and this demo's cluster known to the shell
PATH=$root/bin:\$PATH
KCORE_HOME=$root/demo/home
export PATH KCORE_HOME
ENV
. ./env
if [ ! -e home/config ]; then
  say "a cluster's CA on this machine: kcore create cluster"
  (umask 077 && head -c 18 /dev/urandom | od -An -tx1 | tr -d ' \n' >passphrase)
  kcore create cluster --context demo --passphrase-file passphrase
fi

say "kcore orchestrate deploy_node --on '*'"
kcore orchestrate deploy_node --on '*' --passphrase-file passphrase --yes

say "kcore get nodes"
kcore get nodes
cat <<NEXT

Both nodes are deployed. What to try next:
  cd demo && . ./env
  kcore orchestrate deploy_node --on '*' --passphrase-file passphrase    again: nothing changes
  kcore lab ssh --name demo n2 systemctl stop kcore-node-agent; kcore get nodes      n2 turns NotReady
  kcore orchestrate deploy_node n2 --passphrase-file passphrase --dry-run
  kcore exec --on 'role:worker' -- uname -a
  kcore runs list
Take it down:
  kcore lab down --name demo && rm -rf $root/demo
NEXT
