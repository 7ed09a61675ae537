import type { Tool } from "../define.ts";
import { rawSh, sh, type Sh } from "../sh.ts";

export const systemctl: Tool = { command: "systemctl", package: "systemd" };

type Property = "ActiveState" | "LoadState" | "MainPID" | "NeedDaemonReload" | "UnitFileState";

/** Sets a variable for each of these properties of a unit, by one call of systemctl(1), show. */
export function unitProperties(unit: string, names: readonly Property[]): Sh {
  return sh`shown=$(systemctl show -p ${names.join(",")} -- ${unit}) || exit 1
while IFS== read -r property value; do
  case $property in ${rawSh(names.join(" | "))}) eval "$property=\$value" ;; esac
done <<END_OF_PROPERTIES
$shown
END_OF_PROPERTIES`;
}

/** Runs daemon-reload if systemd reports that the unit's files changed on the disk. */
export function reloadIfNeeded(unit: string): Sh {
  return sh`case $(systemctl show -p NeedDaemonReload -- ${unit}) in *=yes) systemctl daemon-reload || exit 1 ;; esac`;
}

/** `|| refuse …`, to follow a command on its line: refuses with the unit's state and the end of its log. */
export function orRefuse(unit: string | Sh, code: "SERVICE_FAILED" | "SERVICE_UNSTABLE", message: string | Sh): Sh {
  return sh`|| refuse ${code} ${message}"$K_NL$(systemctl --no-pager --full -n 20 status -- ${unit} 2>&1)"`;
}

/**
 * In a probe: refuses if this step has just started or restarted the unit and it is not active. A start that systemd
 * reports as done may have failed: the program exited at once, or a condition did not hold.
 */
export function refuseUnlessUp(unit: string): Sh {
  return sh`if [ "$ActiveState" != active ] && { [ -e "$K_TMP/started" ] || [ -e "$K_TMP/restarted" ]; }; then
  # A further attempt starts it again.
  rm -f "$K_TMP/started" "$K_TMP/restarted"
  why="it is $ActiveState"
  case $ActiveState,$(systemctl show -p ConditionResult,Type -- ${unit}) in
    *Result=no*) why="a condition of the unit does not hold" ;;
    inactive*Type=oneshot*) why="Type=oneshot ends by itself; RemainAfterExit=yes keeps it active, command.run runs it once" ;;
  esac
  false ${orRefuse(unit, "SERVICE_FAILED", sh`${`${unit} was started and is not running`}": $why"`)}
fi`;
}

/** Refuses unless the unit stays up for `seconds` without a restart. */
export function refuseUnlessStable(unit: string, seconds: number): Sh {
  if (seconds === 0) return sh`:`;
  return sh`remaining=${Math.ceil(seconds)} first=
while :; do
  now=$(systemctl show -p ActiveState,NRestarts,InvocationID -- ${unit} | sort | tr '\n' ' ')
  : "\${first:=$now}"
  case $now in ActiveState=active*) [ "$now" = "$first" ] ;; *) false ;; esac ${orRefuse(unit, "SERVICE_UNSTABLE", `${unit} started but did not stay up for ${seconds} s`)}
  [ "$remaining" -gt 0 ] || break
  sleep 1
  remaining=$((remaining - 1))
done`;
}

/**
 * Reports the fact `program` by `$MainPID`: the folder if the unit's main process runs a program below it, else that
 * program.
 */
export function reportProgram(folder: string): Sh {
  return sh`program=$(readlink "/proc/$MainPID/exe" 2>/dev/null)
case $program in ${folder}/*) program=${folder} ;; esac
fact program "\${program:-none}"`;
}

/** sh condition: the unit's main process runs a program below the folder. */
export function comesFrom(unit: string, folder: string): Sh {
  return sh`pid=$(systemctl show -p MainPID -- ${unit}) && case $(readlink "/proc/\${pid#*=}/exe" 2>/dev/null) in ${folder}/*) ;; *) false ;; esac`;
}

/** Waits at most 10 s for the unit's program: systemd reports a start before a start script has executed the program. */
export function awaitProgram(unit: string, folder: string): Sh {
  return sh`remaining=10
while [ "$remaining" -gt 0 ] && ! { ${comesFrom(unit, folder)}; }; do
  sleep 1
  remaining=$((remaining - 1))
done`;
}

export function refuseStatic(unit: string): Sh {
  return sh`refuse UNIT_STATIC ${`${unit} has no WantedBy= or RequiredBy= in an [Install] section, so it cannot be enabled`}`;
}

/** For a dry run: fails if the unit is missing, or refuses if it is to be enabled and cannot be. */
export function foreseeStart(unit: string, isEnabled: boolean): Sh {
  return sh`${unitProperties(unit, ["LoadState", "UnitFileState"])}
[ "$LoadState" != not-found ] || { echo ${`there is no unit ${unit}`} >&2; exit 1; }
${isEnabled ? sh`case $UnitFileState in static | indirect) ${refuseStatic(unit)} ;; esac` : sh``}`;
}

/**
 * Refuses a unit that systemd-analyze does not accept. The file `$unit` has the text, under the unit's own name. The
 * unit's programs may still be missing.
 */
export function verifyUnit(name: string): Sh {
  return sh`if have systemd-analyze; then
  output=$(systemd-analyze verify --man=no --recursive-errors=no "$unit" 2>&1 | grep -v 'is not executable: No such file')
  # Before systemd 250 the option is missing, and errors of other units are told, too.
  case $output in *"unrecognized option"*)
    output=$(systemd-analyze verify --man=no "$unit" 2>&1 | grep -F -e "\${unit##*/}" | grep -v 'is not executable: No such file') ;;
  esac
  [ -z "$output" ] || refuse UNIT_INVALID ${`systemd does not accept the text of ${name}`}"$K_NL$output"
fi`;
}
