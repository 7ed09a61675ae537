import { sh, Sh, shLines } from "../sh.ts";

/** The wanted packages, and how to change them. */
export interface Packages {
  /** The packages; a `name` of type Sh expands to names on the node. */
  readonly names: readonly { readonly name: string | Sh; readonly version?: string; readonly release?: string }[];
  readonly state: "present" | "latest" | "absent";
  readonly updateCache: boolean;
  readonly recommends: boolean;
  readonly purge: boolean;
  /** Seconds to wait for the lock of apt or apk; dnf waits by itself. */
  readonly lockTimeout: number;
}

/** The operations of one package manager, as texts of sh. */
export interface PackageManager {
  /**
   * Prints `installed NAME VERSION` for each of these packages that is installed, beside lines that begin with other words.
   * A package of several architectures has several lines.
   */
  readonly list: (names: Sh | readonly string[]) => Sh;
  /** Prints the version that a package file on the node has, if exactly that version is installed. */
  readonly installedFile: (path: string | Sh) => Sh;
  /** Prints the available version if it is newer than `$version`, the installed one; else nothing. */
  readonly newer: (name: string | Sh) => Sh;
  /** Refuses an interrupted dpkg, and a removal of packages that others need. */
  readonly guard: (packages: Packages) => Sh;
  /** In dry runs: fails if the package manager's own simulation fails. */
  readonly foresee: (packages: Packages) => Sh;
  readonly apply: (packages: Packages) => Sh;
}

/**
 * Sets `due` to the packages to change, since apt-get and dnf would upgrade every package that they are given. Sets `in_order`
 * to the packages in order, each with its version. Names that the node computes are always due.
 */
function findDue(
  manager: Pick<PackageManager, "list" | "installedFile" | "newer">,
  { names, state }: Pick<Packages, "names" | "state">,
): Sh {
  const texts = names.flatMap(({ name }) => (typeof name === "string" ? [name] : []));
  return shLines([
    sh`due= in_order=`,
    askVersions(manager, texts),
    ...names.map(({ name, version, release }) => {
      if (typeof name !== "string") return sh`due="$due "${name}`;
      const isMissing = version === undefined ? sh`[ -z "$version" ]` : sh`! ${isVersion(version)}`;
      const isDue = {
        absent: sh`[ -n "$version" ]`,
        present: isMissing,
        latest: sh`${isMissing} || { newer=$(${manager.newer(name)}) && [ -n "$newer" ]; }`,
      }[state];
      return sh`${findVersion(manager, name)}
if ${isDue}; then due="$due "${wordOf(name, version, release)}; ${isFile(name) ? sh`` : sh`else in_order="$in_order "${name}"=$version"; `}fi`;
    }),
  ]);
}

/** Asks once for all these packages, before {@link findVersion}. */
export function askVersions({ list }: Pick<PackageManager, "list">, names: Sh | readonly string[]): Sh {
  const plain = names instanceof Sh ? names : names.filter((name) => !isFile(name));
  if (plain instanceof Array && plain.length === 0) return sh``;
  return sh`${listVersions({ list }, plain)}
${versionOf}`;
}

/** Sets `versions` to the lines of `list` for these packages. */
export function listVersions({ list }: Pick<PackageManager, "list">, names: Sh | readonly string[]): Sh {
  return sh`versions=$K_NL$(${list(names)})$K_NL`;
}

/** Defines `version_of NAME`, which sets `version`. */
export const versionOf = sh`version_of() {
  version=\${versions#*"\${K_NL}installed $1 "}
  [ "$version" != "$versions" ] || version=
  version=\${version%%"$K_NL"*}
}`;

/** Sets `version` to the installed version of the package, or to nothing. Follows {@link askVersions}. */
export function findVersion({ installedFile }: Pick<PackageManager, "installedFile">, name: string | Sh): Sh {
  return typeof name === "string" && isFile(name) ? sh`version=$(${installedFile(name)})` : sh`version_of ${name}`;
}

/** Whether the name is the path of a package file. */
export function isFile(name: string): boolean {
  return name.startsWith("/");
}

function wordOf(name: string, version?: string, release?: string): string {
  return `${name}${version === undefined ? "" : `=${version}`}${release === undefined ? "" : `/${release}`}`;
}

/** sh condition: `$version` is the wanted version, or begins with a wanted version that ends in `*`. */
export function isVersion(version: string): Sh {
  // “case” takes a quoted pattern literally; “${…#…}” does not.
  return version.endsWith("*")
    ? sh`case $version in ${version.slice(0, -1)}*) ;; *) false ;; esac`
    : sh`[ "$version" = ${version} ]`;
}

function words({ names }: Pick<Packages, "names">): Sh {
  return names.reduce(
    (all, { name, version }) =>
      sh`${all} ${typeof name === "string" && version !== undefined ? `${name}=${version}` : name}`,
    sh``,
  );
}

/**
 * Defines `locked COMMAND...`: repeats the command while its stderr matches `held`, for at most `lockTimeout` seconds,
 * and reports the lock's holder. At the limit it removes `$mark`, if set, and refuses.
 */
function withLock({ lockTimeout }: Pick<Packages, "lockTimeout">, held: string): Sh {
  return sh`waited=0 mark=
locked() {
  while :; do
    "$@" 2>"$K_TMP/err"
    status=$?
    grep -q ${held} "$K_TMP/err" || { cat "$K_TMP/err" >&2; return $status; }
    holder=$(sed -n 's/.*held by process \([0-9]*\)\( (\(.*\))\)\{0,1\}.*/process \1 \3/p' "$K_TMP/err" | head -n 1)
    [ "$waited" -lt ${Math.floor(lockTimeout)} ] || {
      [ -z "$mark" ] || rm -f "$mark"
      refuse PACKAGE_LOCKED "the package manager's lock is held by \${holder:-another program}, waited \${waited} s$K_NL$(cat "$K_TMP/err")"
    }
    [ $((waited % 30)) != 0 ] || note "waiting for the package manager's lock, held by \${holder:-another program}"
    sleep 2
    waited=$((waited + 2))
  done
}`;
}

/** The options, verb and packages for apt-get. */
function aptWords(packages: Packages): Sh {
  const { state, recommends, purge } = packages;
  const verb = state === "absent" ? (purge ? "purge" : "remove") : "install";
  // Installed packages are named with their versions, so that neither they nor their dependencies give way to the new
  // ones.
  return sh`${recommends ? sh`` : sh`--no-install-recommends`} ${verb} -- $due${state === "absent" ? sh`` : sh` $in_order`}`;
}

/**
 * A mark that exists while a step of kcore's runs dpkg. If a power cut, for example, leaves the mark, the next step
 * finishes dpkg's work; without the mark an interrupted dpkg is refused (PACKAGE_INTERRUPTED).
 */
const dpkgMark = sh`"$K_STATE/fresh/dpkg"`;

/**
 * sh condition: a step of kcore's was interrupted while dpkg worked. Files of a package may exist, while the package or
 * its triggers are not configured.
 */
export const isCutOff = sh`[ -e ${dpkgMark} ]`;

/** Defines `locked COMMAND...` for commands that take apt's or dpkg's locks; see {@link withLock}. */
export function lockedApt(limit: Pick<Packages, "lockTimeout">): Sh {
  return withLock(limit, "Could not get lock\\|Unable to lock\\|Unable to acquire the dpkg frontend lock");
}

/** Before other changes: finishes dpkg's work if a step of kcore's was interrupted in it. Defines `locked`. */
export function finishDpkg(limit: Pick<Packages, "lockTimeout">): Sh {
  return sh`export DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l APT_LISTCHANGES_FRONTEND=none
${lockedApt(limit)}
if ${isCutOff}; then
  note "finishing what dpkg was doing when a step of kcore's was cut off"
  locked dpkg --force-confdef --force-confold --configure -a || exit 1
  rm -f ${dpkgMark}
fi`;
}

/**
 * Runs apt-get without questions, with the mark of an unfinished dpkg meanwhile; sets `status` to its exit code. Follows
 * {@link finishDpkg}.
 */
export function runApt(words: Sh): Sh {
  return sh`mark=${dpkgMark}
mkdir -p "$K_STATE/fresh" && : >"$mark" && sync -f "$mark" || exit 1
locked apt-get -q -y -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold ${words}
status=$?
rm -f "$mark"
! grep -q 'dpkg was interrupted' "$K_TMP/err" ||
  refuse PACKAGE_INTERRUPTED "dpkg was interrupted on this node: run dpkg --configure -a there first"`;
}

/** A file that each fetch of lists by a step with `listsMaxAge` touches: its time of change is the time of the last fetch. */
export const listsStamp = sh`"$K_STATE/lists-updated"`;

/** Reports the fact `lists`: `old` if the package lists were fetched more than `maxAge` seconds ago, else `fresh`. */
export function probeLists(maxAge: number): Sh {
  return sh`case $(find ${listsStamp} /var/lib/apt/lists -prune -mmin -${Math.max(1, Math.floor(maxAge / 60))} 2>/dev/null) in '') fact lists old ;; *) fact lists fresh ;; esac`;
}

// apt-get(8), dpkg(1). Numbered files in updates/ are normal while dpkg runs; later they mean that it was interrupted.
export const apt: PackageManager = {
  list: (names) =>
    sh`dpkg-query -W -f '\${db:Status-Status} \${Package} \${Version}\n\${db:Status-Status} \${Package}:\${Architecture} \${Version}\n' -- ${names} 2>/dev/null`,
  installedFile: (path) => sh`set -- $(dpkg-deb -W --showformat='\${Package} \${Version}' -- ${path})
${apt.list(sh`"$1"`)} | grep -xF -e "installed $1 $2" | sed 's/.* //'`,
  newer: (name) => sh`apt-cache policy -- ${name} | sed -n 's/^  Candidate: //p' | grep -vxF -e "$version" -e '(none)'`,
  guard: ({ state, names }) => sh`busy=
for comm in /proc/[0-9]*/comm; do
  { IFS= read -r name <"$comm"; } 2>/dev/null && [ "$name" = dpkg ] && busy=yes
done
set -- /var/lib/dpkg/updates/[0-9]*
[ -n "$busy" ] || [ ! -e "$1" ] || ${isCutOff} ||
  refuse PACKAGE_INTERRUPTED "dpkg was interrupted on this node: run dpkg --configure -a there first"
${
  state === "absent"
    ? sh`printf '%s\n' ${words({ names })} >"$K_TMP/names"
others=$(apt-get -s -o Debug::NoLocking=true remove -- ${words({ names })} | sed -n 's/^Remv \([^ ]*\) .*/\1/p' | grep -vxF -f "$K_TMP/names")
[ -z "$others" ] || refuse PACKAGE_NEEDED "these packages would go too: $(echo $others)"`
    : sh``
}`,
  // If a run would fetch lists first and the present lists do not suffice, the dry run fetches lists to its own folder.
  foresee: (packages) => sh`${findDue(apt, packages)}
set -- -q -o Debug::NoLocking=true
[ -z "$due" ] || until apt-get -s "$@" ${aptWords(packages)} >/dev/null 2>"$K_TMP/err"; do
  ${packages.updateCache ? sh`[ ! -d "$K_TMP/lists" ]` : sh`false`} || { cat "$K_TMP/err" >&2; exit 1; }
  mkdir -p "$K_TMP/lists/partial" "$K_TMP/cache" || exit 1
  set -- "$@" -o Dir::State::lists="$K_TMP/lists" -o Dir::Cache="$K_TMP/cache"
  apt-get "$@" update >/dev/null 2>"$K_TMP/err" || { cat "$K_TMP/err" >&2; exit 1; }
done`,
  apply: (packages) => {
    const { updateCache } = packages;
    return sh`${finishDpkg(packages)}
${updateCache ? sh`locked apt-get -q update || exit 1` : sh``}
${findDue(apt, packages)}
[ -n "$due" ] || exit 0
${runApt(aptWords(packages))}
${
  updateCache
    ? sh``
    : sh`! grep -q 'Unable to locate package\|has no installation candidate' "$K_TMP/err" || echo "updateCache: true fetches the lists first" >&2`
}
exit $status`;
  },
};

// apk(8), Alpine.
const apk: PackageManager = {
  list: (names) =>
    sh`for name in ${names}; do apk info -e -v "$name" 2>/dev/null | sed "s/^$name-/installed $name /"; done`,
  installedFile: () => sh`:`,
  newer: (name) => sh`apk version -q -l '<' ${name} 2>/dev/null`,
  guard: () => sh`:`,
  // With updateCache a run fetches lists first, whose effect a dry run cannot know.
  foresee: (packages) =>
    packages.updateCache
      ? sh`:`
      : sh`${findDue(apk, packages)}
[ -z "$due" ] || apk --simulate ${apkWords(packages)} >/dev/null`,
  apply: (packages) => sh`${withLock(packages, "Unable to lock database")}
${packages.updateCache ? sh`locked apk update || exit 1` : sh``}
${findDue(apk, packages)}
[ -z "$due" ] || locked apk ${apkWords(packages)}`,
};

function apkWords({ state }: Packages): Sh {
  return sh`${state === "absent" ? sh`del` : state === "latest" ? sh`add -u` : sh`add`} $due`;
}

// dnf(8), rpm(8). dnf itself waits for its lock, and reports that.
const dnf: PackageManager = {
  // Of several installed versions the newest is the last.
  list: (names) =>
    sh`for name in ${names}; do rpm -q --qf '%{VERSION}-%{RELEASE}\n' -- "$name" 2>/dev/null | sed -n -e '/ /d' -e "\$s/^/installed $name /p"; done`,
  installedFile: (path) =>
    sh`rpm -q --qf '%{VERSION}-%{RELEASE}\n' -- "$(rpm -qp -- ${path} 2>/dev/null)" 2>/dev/null | grep -v ' ' | tail -n 1`,
  newer: (name) => sh`dnf -q -C check-update ${name} 2>/dev/null | sed -n 's/^[^ ]*  *\([^ ]*\) .*/\1/p' | head -n 1`,
  guard: () => sh`:`,
  foresee: (packages) =>
    packages.updateCache || packages.state === "absent"
      ? sh`:`
      : sh`${findDue(dnf, packages)}
# Of several packages dnf info needs to know only one.
for one in $due; do dnf -q -C info -- "$one" >/dev/null || { echo "dnf does not know $one" >&2; exit 1; }; done`,
  apply: (packages) => sh`${packages.updateCache ? sh`dnf -q makecache || exit 1` : sh``}
${findDue(dnf, packages)}
[ -z "$due" ] || dnf -y ${packages.recommends ? sh`` : sh`--setopt=install_weak_deps=False`} ${packages.state === "absent" ? sh`remove` : packages.state === "latest" ? sh`install --best` : sh`install`} $due`,
};

/** Chooses on the node the text of its package manager. */
export function withPackageManager(text: (manager: PackageManager) => Sh): Sh {
  return byManager({ apt: text(apt), apk: text(apk), dnf: text(dnf) });
}

/** Chooses on the node one of these texts by its package manager, or refuses. */
export function byManager(texts: { readonly apt: Sh; readonly apk: Sh; readonly dnf: Sh }): Sh {
  return sh`if have apt-get; then
${texts.apt}
elif have apk; then
${texts.apk}
elif have dnf; then
${texts.dnf}
else refuse TOOL_MISSING "neither apt-get, apk nor dnf is there; on NixOS packages belong into the node's flake"; fi`;
}
