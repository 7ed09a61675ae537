import { sh, type Sh } from "../sh.ts";
import { apt, byManager, finishDpkg, isCutOff, listsStamp, runApt } from "./packages.ts";

/** The arguments of package.upgraded for a package manager. */
export interface Upgrade {
  /** Packages that stay as they are. */
  readonly except: readonly string[];
  /** `full` may also remove packages; `safe` keeps back upgrades that need this. */
  readonly mode: "safe" | "full";
  /** Whether an upgrade may remove packages. */
  readonly removals: boolean;
  /** Seconds to wait for the lock of apt or apk; dnf waits by itself. */
  readonly lockTimeout: number;
}

/** The operations of one package manager for package.upgraded. */
export interface Upgrader {
  /**
   * Sets three lists without changing anything. `newer`: a line for each package with a new version, with both versions
   * where they are known. `kept_back`: names of packages kept back. `gone`: names of packages that would be removed.
   */
  readonly plan: (upgrade: Upgrade) => Sh;
  /** In dry runs with old lists: `plan` with new lists, which do not replace the node's. Absent: the package manager cannot do it. */
  readonly planWithNewLists?: (upgrade: Upgrade) => Sh;
  readonly guard: Sh;
  /** Fetches lists if `$lists` is not `fresh`, upgrades, and for apt and apk first calls the function `may`, which can refuse. */
  readonly apply: (upgrade: Upgrade) => Sh;
  /** sh condition: an upgrade of kcore's was interrupted. */
  readonly isCutOff: Sh;
}

/** apt-get(8). A pin to the installed version (apt_preferences(5)), for this step only, keeps a package as it is. */
function aptWords({ except, mode }: Upgrade): Sh {
  return sh`${except.length === 0 ? sh`` : sh`-o Dir::Etc::preferencesparts="$K_TMP/pins"`} ${mode === "full" ? sh`dist-upgrade` : sh`--with-new-pkgs upgrade`}`;
}

function pins({ except }: Upgrade): Sh {
  return except.length === 0
    ? sh``
    : sh`rm -rf "$K_TMP/pins" && mkdir "$K_TMP/pins" || exit 1
for pin in /etc/apt/preferences.d/*; do [ ! -f "$pin" ] || ln -s "$pin" "$K_TMP/pins/" || exit 1; done
printf 'Package: %s\nPin: release a=now\nPin-Priority: 1001\n' ${except.join(" ")} >"$K_TMP/pins/zz-kcore" || exit 1`;
}

function simulate(upgrade: Upgrade, options = sh``): Sh {
  return sh`${pins(upgrade)}
apt-get -s -o Debug::NoLocking=true ${options} ${aptWords(upgrade)} >"$K_TMP/plan" 2>"$K_TMP/err" || { cat "$K_TMP/err" >&2; exit 1; }
newer=$(sed -n 's/^Inst \([^ ]*\) \[\([^]]*\)\] (\([^ ]*\).*/\1 \2: \3/p' "$K_TMP/plan")
gone=$(sed -n 's/^Remv \([^ ]*\) .*/\1/p' "$K_TMP/plan")
# The names are in indented lines below their heading.
kept_back=$(sed -n '/ have been kept back:$/,/^[^ ]/s/^  *//p' "$K_TMP/plan")
kept_back=$(echo $kept_back)`;
}

/** Options for apt's lists and caches in the step's own folder. */
const inOwnFolder = sh`-o Dir::State::lists="$K_TMP/lists" -o Dir::Cache="$K_TMP/cache"`;

const aptUpgrader: Upgrader = {
  isCutOff,
  guard: apt.guard({
    names: [],
    state: "latest",
    updateCache: true,
    recommends: false,
    purge: false,
    lockTimeout: 0,
  }),
  plan: (upgrade) => simulate(upgrade),
  planWithNewLists: (upgrade) => sh`mkdir -p "$K_TMP/lists/partial" "$K_TMP/cache" || exit 1
apt-get -q -o Debug::NoLocking=true ${inOwnFolder} update >/dev/null 2>"$K_TMP/err" || { cat "$K_TMP/err" >&2; exit 1; }
${simulate(upgrade, inOwnFolder)}`,
  apply: (upgrade) => sh`${finishDpkg(upgrade)}
[ "$lists" = fresh ] || { locked apt-get -q update && : >${listsStamp}; } || exit 1
${simulate(upgrade)}
may
${runApt(aptWords(upgrade))}
exit $status`,
};

// apk(8). It always upgrades all packages.
const apkUpgrader: Upgrader = {
  isCutOff: sh`false`,
  guard: sh`:`,
  plan: ({
    except,
  }) => sh`${except.length === 0 ? sh`` : sh`refuse TOOL_MISSING "apk upgrades all packages or none: except is for apt and dnf"`}
apk upgrade --simulate >"$K_TMP/plan" 2>"$K_TMP/err" || { cat "$K_TMP/err" >&2; exit 1; }
newer=$(sed -n 's/^([0-9/]*) Upgrading \([^ ]*\) (\([^ ]*\) -> \([^ ]*\))$/\1 \2: \3/p' "$K_TMP/plan")
gone=$(sed -n 's/^([0-9/]*) Purging \([^ ]*\) .*/\1/p' "$K_TMP/plan")
kept_back=`,
  apply: (upgrade) => sh`[ "$lists" = fresh ] || { apk update && : >${listsStamp}; } || exit 1
${apkUpgrader.plan(upgrade)}
may
apk upgrade --wait ${Math.floor(upgrade.lockTimeout)}`,
};

// dnf(8). It removes only packages that a new package obsoletes.
const dnfUpgrader: Upgrader = {
  isCutOff: sh`false`,
  guard: sh`:`,
  plan: (upgrade) => sh`dnf -q -C ${dnfWords(upgrade)} check-update >"$K_TMP/plan" 2>"$K_TMP/err"
case $? in 0 | 100) ;; *) cat "$K_TMP/err" >&2 && exit 1 ;; esac
newer=$(sed -n -e '/^Obsoleting/q' -e 's/^\([^ ]*\)\.[^ .]*  *\([^ ]*\)  *[^ ]*$/\1: \2/p' "$K_TMP/plan")
gone= kept_back=`,
  apply: (upgrade) => sh`[ "$lists" = fresh ] || { dnf -q makecache --refresh && : >${listsStamp}; } || exit 1
dnf -y ${dnfWords(upgrade)} upgrade`,
};

function dnfWords({ except }: Upgrade): Sh {
  return sh`${except.map((name) => `--exclude=${name}`)}`;
}

/** Chooses on the node the text of its package manager. */
export function withUpgrader(text: (upgrader: Upgrader) => Sh): Sh {
  return byManager({ apt: text(aptUpgrader), apk: text(apkUpgrader), dnf: text(dnfUpgrader) });
}
