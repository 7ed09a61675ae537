import { sh, shLines, type Sh } from "../sh.ts";

export interface Packages {
  readonly names: readonly { readonly name: string; readonly version?: string }[];
  readonly state: "present" | "latest" | "absent";
  readonly updateCache: boolean;
  readonly recommends: boolean;
  readonly purge: boolean;
  /** Seconds. */
  readonly lockTimeout: number;
}

/** The sh texts of package.installed for one package manager. */
export interface PackageManager {
  readonly probe: (packages: Packages) => Sh;
  readonly guard: (packages: Packages) => Sh;
  /** In dry runs: whether the package manager would do it. */
  readonly foresee: (packages: Packages) => Sh;
  readonly apply: (packages: Packages) => Sh;
}

const words = ({ names }: Packages): string[] =>
  names.map(({ name, version }) => (version === undefined ? name : `${name}=${version}`));

/** One fact a package: `absent`, `latest`, `installed`, or its version where the step asks for one. */
function judge({ names, state }: Packages, installed: (name: string) => Sh, candidate: (name: string) => Sh): Sh {
  return shLines(
    names.map(({ name, version }) => {
      const good = state === "latest" ? "latest" : "installed";
      return sh`version=$(${installed(name)})
if [ -z "$version" ]; then fact ${name} absent
${state === "latest" ? sh`elif newer=$(${candidate(name)}) && [ -n "$newer" ]; then fact ${name} "$version, $newer is there"` : sh``}
${version === undefined ? sh`else fact ${name} ${good}; fi` : sh`else fact ${name} "$version"; fi`}`;
    }),
  );
}

/** Runs a command whose error text tells that a lock is held: says who holds it, and tries again for a time. */
function withLock({ lockTimeout }: Packages, held: string): Sh {
  return sh`waited=0
locked() {
  while :; do
    "$@" 2>"$K_TMP/err"
    status=$?
    grep -q ${held} "$K_TMP/err" || { cat "$K_TMP/err" >&2; return $status; }
    holder=$(sed -n 's/.*held by process \([0-9]*\)\( (\(.*\))\)\{0,1\}.*/process \1 \3/p' "$K_TMP/err" | head -n 1)
    [ "$waited" -lt ${Math.floor(lockTimeout)} ] ||
      refuse PACKAGE_LOCKED "the package manager's lock is held by \${holder:-another program}, waited \${waited} s$K_NL$(cat "$K_TMP/err")"
    [ $((waited % 30)) != 0 ] || note "waiting for the package manager's lock, held by \${holder:-another program}"
    sleep 2
    waited=$((waited + 2))
  done
}`;
}

/** What to do with them, as apt-get takes it. */
function aptWords(packages: Packages): Sh {
  const { state, recommends, purge } = packages;
  const verb = state === "absent" ? (purge ? "purge" : "remove") : "install";
  return sh`${recommends ? sh`` : sh`--no-install-recommends`} ${verb} -- ${words(packages)}`;
}

// apt-get(8), dpkg(1). dpkg leaves numbered files in updates/ when it was interrupted; they are normal while it runs.
export const apt: PackageManager = {
  probe: (packages) =>
    judge(
      packages,
      (name) =>
        sh`dpkg-query -W -f '\${db:Status-Status} \${Version}\n' -- ${name} 2>/dev/null | sed -n 's/^installed //p' | head -n 1`,
      (name) => sh`apt-cache policy -- ${name} | sed -n 's/^  Candidate: //p' | grep -vxF -e "$version" -e '(none)'`,
    ),
  guard: ({ state, names }) => sh`busy=
for comm in /proc/[0-9]*/comm; do
  { IFS= read -r name <"$comm"; } 2>/dev/null && [ "$name" = dpkg ] && busy=yes
done
set -- /var/lib/dpkg/updates/[0-9]*
[ -n "$busy" ] || [ ! -e "$1" ] ||
  refuse PACKAGE_INTERRUPTED "dpkg was interrupted on this node: run dpkg --configure -a there first"
${
  state === "absent"
    ? sh`others=$(apt-get -s -o Debug::NoLocking=true remove -- ${names.map(({ name }) => name)} | sed -n 's/^Remv \([^ ]*\) .*/\1/p' | grep -vxF ${names.flatMap(({ name }) => ["-e", name])})
[ -z "$others" ] || refuse PACKAGE_NEEDED "these packages would go too: $(echo $others)"`
    : sh``
}`,
  // Lists that the run would fetch first are fetched to a folder of the step's own, when those that are there do not do.
  foresee: (packages) => sh`set -- -q -o Debug::NoLocking=true
until apt-get -s "$@" ${aptWords(packages)} >/dev/null 2>"$K_TMP/err"; do
  ${packages.updateCache ? sh`[ ! -d "$K_TMP/lists" ]` : sh`false`} || { cat "$K_TMP/err" >&2; exit 1; }
  mkdir -p "$K_TMP/lists/partial" "$K_TMP/cache" || exit 1
  set -- "$@" -o Dir::State::lists="$K_TMP/lists" -o Dir::Cache="$K_TMP/cache"
  apt-get "$@" update >/dev/null 2>"$K_TMP/err" || { cat "$K_TMP/err" >&2; exit 1; }
done`,
  apply: (packages) => {
    const { updateCache } = packages;
    return sh`export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l APT_LISTCHANGES_FRONTEND=none
${withLock(packages, "Could not get lock\\|Unable to lock\\|Unable to acquire the dpkg frontend lock")}
${updateCache ? sh`locked apt-get -q update || exit 1` : sh``}
locked apt-get -q -y -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold ${aptWords(packages)}
status=$?
! grep -q 'dpkg was interrupted' "$K_TMP/err" ||
  refuse PACKAGE_INTERRUPTED "dpkg was interrupted on this node: run dpkg --configure -a there first"
${
  updateCache
    ? sh``
    : sh`! grep -q 'Unable to locate package\|has no installation candidate' "$K_TMP/err" || echo "updateCache: true fetches the lists first" >&2`
}
exit $status`;
  },
};

// apk(8), Alpine.
export const apk: PackageManager = {
  probe: (packages) =>
    judge(
      packages,
      (name) => sh`apk info -e -v ${name} 2>/dev/null | sed "s/^"${name}"-//"`,
      (name) => sh`apk version -q -l '<' ${name} 2>/dev/null`,
    ),
  guard: () => sh`:`,
  // With lists that the run would fetch first nobody can tell.
  foresee: (packages) => (packages.updateCache ? sh`:` : sh`apk --simulate ${apkWords(packages)} >/dev/null`),
  apply: (packages) => sh`${withLock(packages, "Unable to lock database")}
${packages.updateCache ? sh`locked apk update || exit 1` : sh``}
locked apk ${apkWords(packages)}`,
};

function apkWords(packages: Packages): Sh {
  const { state } = packages;
  return sh`${state === "absent" ? sh`del` : state === "latest" ? sh`add -u` : sh`add`} ${words(packages)}`;
}

// dnf(8), rpm(8). dnf waits for its own lock and says so.
export const dnf: PackageManager = {
  probe: (packages) =>
    judge(
      packages,
      (name) => sh`rpm -q --qf '%{VERSION}-%{RELEASE}\n' -- ${name} 2>/dev/null | grep -v ' ' | tail -n 1`,
      (name) => sh`dnf -q -C check-update ${name} 2>/dev/null | sed -n 's/^[^ ]*  *\([^ ]*\) .*/\1/p' | head -n 1`,
    ),
  guard: () => sh`:`,
  foresee: (packages) =>
    packages.updateCache || packages.state === "absent" ? sh`:` : sh`dnf -q -C info -- ${words(packages)} >/dev/null`,
  apply: (packages) => sh`${packages.updateCache ? sh`dnf -q makecache || exit 1` : sh``}
dnf -y ${packages.recommends ? sh`` : sh`--setopt=install_weak_deps=False`} ${packages.state === "absent" ? sh`remove` : packages.state === "latest" ? sh`install --best` : sh`install`} ${words(packages)}`,
};
