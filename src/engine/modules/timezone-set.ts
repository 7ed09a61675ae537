import { z } from "zod";
import { blobOf } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { fileStepParts } from "../step/fragments/config-file.ts";
import { fileRefusals } from "../step/fragments/files.ts";
import { sh } from "../step/sh.ts";

const database = "/usr/share/zoneinfo";

/**
 * ```yaml
 * timezone.set: { zone: Europe/Berlin }
 * ```
 * The link /etc/localtime (localtime(5)), and /etc/timezone on Debian or where that file exists. Running programs keep the
 * zone that they started with. The hardware clock is not changed.
 */
export const timezoneSet = defineModule({
  name: "timezone.set",
  summary: "Keeps the node's time zone.",
  alsoKnownAs: ["timezone", "timezone.system", "timedatectl"],
  args: z.strictObject({
    zone: z
      .string()
      .max(64)
      .regex(/^[A-Za-z0-9_+-]+(\/[A-Za-z0-9_+-]+)*$/, "must be a zone such as Europe/Berlin or UTC")
      .describe("The zone, as /usr/share/zoneinfo names it."),
  }),
  refusals: ["TIMEZONE_UNKNOWN", "TOOL_MISSING", ...fileRefusals],
  step: ({ zone }) => {
    const city = zone.slice(zone.lastIndexOf("/") + 1);
    const target = `${database}/${zone}`;
    const { resources, keep } = fileStepParts(["/etc/localtime", "/etc/timezone"]);
    // The zone's name is compared without the folder, since systemd makes the link relative.
    const readState = sh`kind_of /etc/localtime
linked=$kind
if [ "$kind" = symlink ]; then
  linked=$(readlink /etc/localtime) && linked=\${linked#*/zoneinfo/}
  [ -e /etc/localtime ] || linked="$linked, which is not there"
fi
named=
if [ -e /etc/timezone ] || [ -e /etc/debian_version ]; then
  named=absent
  { read -r named </etc/timezone; } 2>/dev/null
fi`;
    return {
      effects: { writes: resources, reads: [...resources, { is: "existing", path: target }] },
      want: { zone },
      probe: sh`${readState}
case $named in
  '' | "$linked") fact zone "$linked" ;;
  *) fact zone "$linked (/etc/localtime), $named (/etc/timezone)" ;;
esac`,
      guard: sh`not_nixos /etc/localtime
guard_file /etc/timezone
kind_of /etc/localtime
[ "$kind" != directory ] || refuse FILE_IN_THE_WAY "/etc/localtime is a folder"
if [ ! -f ${target} ] && ! unsure; then
  [ -d ${database} ] || refuse TOOL_MISSING ${`${database} is not on this node (package tzdata)`}
  near=$(find ${database} -type f ! -path '*/right/*' ! -path '*/posix/*' 2>/dev/null | sed 's|^/usr/share/zoneinfo/||' | grep -i -F -e ${city} -e ${city.slice(0, 4)} | sort | head -n 10)
  refuse TIMEZONE_UNKNOWN ${`there is no time zone ${zone}`}"\${near:+: near it are}\${near:+$K_NL$near}"
fi`,
      keep,
      foresee: sh`foresee_place /etc/localtime - 0 - -`,
      apply: sh`${readState}
[ "$linked" = ${zone} ] || put_link ${target} /etc/localtime || exit 1
if [ -n "$named" ] && [ "$named" != ${zone} ]; then put_file ${blobOf(`${zone}\n`)} /etc/timezone 0644 root root; fi`,
      quiet: true,
    };
  },
});
