import { sh, type Sh } from "../sh.ts";

/** sh conditions: the time service reports that the clock is synchronized. */
export const saysSynchronized = {
  chrony: sh`chronyc -n tracking 2>/dev/null | grep -q '^Leap status *: Normal'`,
  timesyncd: sh`[ "$(timedatectl show -p NTPSynchronized 2>/dev/null)" = NTPSynchronized=yes ]`,
} as const;

/** Services that set the clock, by their names in Debian and in other distributions. */
const daemons = "chrony chronyd systemd-timesyncd ntp ntpd ntpsec openntpd".split(" ").map((name) => `${name}.service`);

/**
 * Sets `service` to the wanted service; for `auto` to chrony if it is installed, else to timesyncd. Sets `unit` to the
 * service's unit (empty: not installed), `active` and `enabled` to the unit's state, and `others` to other time services
 * that run.
 */
export function readTimeServices(wanted: "auto" | "chrony" | "timesyncd"): Sh {
  return sh`service=${wanted === "chrony" ? "chrony" : "timesyncd"} unit= active=absent enabled=absent others=
found=$(systemctl show -p Id,LoadState,ActiveState,UnitFileState -- ${daemons}) || exit 1
each_unit() {
  id= load= runs= boots=
  while IFS= read -r line; do
    case $line in
      Id=*) id=\${line#*=} ;;
      LoadState=*) load=\${line#*=} ;;
      ActiveState=*) runs=\${line#*=} ;;
      UnitFileState=*) boots=\${line#*=} ;;
      '')
        [ "$load" != loaded ] || "$1"
        id= load= runs= boots=
        ;;
    esac
  done <<END_OF_UNITS
$found

END_OF_UNITS
}
# On Debian chronyd.service is an alias of chrony.service, so show prints that unit twice.
choose() {
  case $service:$id in
    chrony:chrony*.service | timesyncd:systemd-timesyncd.service) unit=$id active=$runs enabled=$boots ;;
  esac
}
beside() {
  case $runs:$id:$others in
    *:"$unit":* | *" $id "*) ;;
    active:* | activating:*) others="$others $id " ;;
  esac
}
prefer() { case $id in chrony*.service) service=chrony ;; esac; }
${wanted === "auto" ? sh`each_unit prefer` : sh`:`}
each_unit choose
each_unit beside`;
}
