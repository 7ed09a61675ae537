#!/bin/sh
# set-up.sh [tests]: brings all that the demo needs on a fresh Debian 12 with Node 20+ and npm: the packages of
# package-lock.json, and the bundle. “tests”: also Debian packages for the tests' real peers (as root, saying so first).
set -eu
cd "$(dirname "$0")/.."

# A copy of the package-lock.json whose packages are there; the npm script “prepare” leaves it, after each npm ci.
stamp=node_modules/.kcore-installed
if [ ! -e "$stamp" ] || ! cmp -s package-lock.json "$stamp"; then
  echo "set-up: npm ci (the packages of package-lock.json, then the bundle: about a minute)"
  said=$(mktemp)
  npm ci >"$said" 2>&1 || { cat "$said" && rm -f "$said" && exit 1; }
  rm -f "$said"
elif [ ! -e dist/main.js ] || [ -n "$(find src scripts/build.ts -newer dist/main.js -type f | head -n 1)" ]; then
  echo "set-up: building the bundle"
  npm run --silent build
fi

[ "${1:-}" = tests ] || exit 0
missing=
need() { [ -x "$1" ] || missing="$missing $2"; }
need /usr/sbin/sshd openssh-server
need /usr/bin/ssh-keygen openssh-client
need /usr/sbin/dropbear dropbear-bin
need /bin/busybox busybox-static
need /usr/bin/openssl openssl
need /usr/bin/git git
need /usr/bin/sudo sudo
need /usr/bin/strip binutils
need /usr/sbin/ip iproute2
need /usr/sbin/nft nftables
# Layouts of this machine's own loop disks; a test that finds it missing would install it, and others would see another plan.
need /usr/sbin/sgdisk gdisk
# Images of Debian.
need /usr/sbin/debootstrap debootstrap
need /usr/bin/faketime faketime
need /usr/bin/tmux tmux
# age opens values that kcore sealed, and the other way round.
need /usr/bin/age age
# A real Prometheus scrapes controllers and agents, and promtool tests the alerts.
need /usr/bin/promtool prometheus
need /usr/bin/prometheus-node-exporter prometheus-node-exporter
# Runs over a queue.
need /usr/bin/redis-server redis-server
# Ansible's inventories are imported as Ansible reads them.
need /usr/bin/ansible-inventory ansible-core
# Layouts of disks in Nix, and the configurations for NixOS, are evaluated by a real Nix.
need /usr/bin/nix-instantiate nix-bin
# The report is opened in a real browser.
need /usr/bin/chromium chromium
need /usr/bin/xmllint libxml2-utils
need /usr/bin/shellcheck shellcheck
# Images for a first boot, and their reader.
need /usr/bin/xorriso xorriso
need /usr/bin/isoinfo genisoimage
# Journals with entries of known times are made.
need /lib/systemd/systemd-journal-remote systemd-journal-remote
# Manual pages are formatted.
need /usr/bin/groff groff-base
# Login shells that nodes may have.
need /bin/zsh zsh
need /usr/bin/fish fish
need /bin/tcsh tcsh
need /bin/csh csh
need /bin/ksh ksh
need /bin/mksh mksh
if [ -n "$missing" ]; then
  if [ "$(id -u)" != 0 ]; then
    echo "set-up: the tests need these Debian packages; install them as root:$missing" >&2
    exit 1
  fi
  echo "set-up: installing Debian packages for the tests:$missing"
  export DEBIAN_FRONTEND=noninteractive
  # A private sshd is started by the tests; the machine's own must not start because of us.
  guard=
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    guard=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$guard"
    chmod +x "$guard"
    trap 'rm -f "$guard"' EXIT
  fi
  apt-get update -q >/dev/null
  # A list of words.
  # shellcheck disable=SC2086
  apt-get install -q -y --no-install-recommends $missing >/dev/null
fi
