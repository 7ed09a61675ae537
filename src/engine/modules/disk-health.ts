import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { DiskId, diskName } from "../step/disk-names.ts";
import { findDisk } from "../step/fragments/disk.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * disk.health:
 *   disk: { serial: S3Z8NB0K }
 *   maxWear: 90
 * ```
 * Checks the disk's own report, by smartctl(8): verdict, unreadable sectors, used life and temperature, in the words of ATA,
 * SCSI and NVMe. A disk without SMART, such as a virtual disk, counts as healthy unless `required`. Changes nothing.
 */
export const diskHealth = defineModule({
  name: "disk.health",
  summary: "Checks that a disk calls itself healthy (SMART), where it can say so.",
  alsoKnownAs: ["smart", "smartctl"],
  args: z.strictObject({
    disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size."),
    maxWear: z.int().min(1).max(255).default(100).describe("How much of an SSD's life may be used, in percent."),
    maxBadSectors: z
      .int()
      .min(0)
      .default(0)
      .describe("How many sectors or blocks may be unreadable, or waiting to be replaced."),
    maxTemperature: z.int().min(1).max(150).optional().describe("The highest temperature, in degrees Celsius."),
    required: z.boolean().default(false).describe("Must the disk have SMART?"),
  }),
  refusals: ["DISK_AMBIGUOUS", "DISK_FAILING", "DISK_NOT_FOUND"],
  step: ({ disk, maxWear, maxBadSectors, maxTemperature, required }) => ({
    effects: { writes: [], reads: [{ is: "disk", name: diskName(disk).value }, { is: "system" }] },
    want: { health: "good" },
    probe: sh`${findDisk(disk)}
# The exit status is a bit mask: bits 0 to 2 mean that smartctl could not read, the other bits describe the disk.
smartctl -H -A "$disk" >"$K_TMP/smart" 2>&1
status=$?
# The tenth word of an ATA attribute's line begins with its raw value; NVMe and SCSI write names and values.
number() { awk -v id="$1" '$1 == id && NF > 9 { sub(/[^0-9].*/, "", $10); print $10; exit }' "$K_TMP/smart"; }
value() { sed -n -e "s/^$1: *\([0-9][0-9,]*\).*/\1/p" "$K_TMP/smart" | tr -d , | head -n 1; }
verdict=$(sed -n -e 's/^SMART overall-health self-assessment test result: //p' -e 's/^SMART Health Status: //p' "$K_TMP/smart" | head -n 1)
bad=0
for count in "$(number 197)" "$(number 198)" "$(value 'Media and Data Integrity Errors')" "$(value 'Elements in grown defect list')"; do
  [ "\${count:-0}" -le "$bad" ] || bad=$count
done
wear=$(value 'Percentage Used') || wear=
[ -n "$wear" ] || wear=$(value 'Percentage used endurance indicator')
warm=$(value Temperature)
[ -n "$warm" ] || warm=$(value 'Current Drive Temperature')
[ -n "$warm" ] || warm=$(number 194)
why=
tell() { why="$why\${why:+, }$1"; }
if [ -z "$verdict" ] && [ $((status & 7)) != 0 ]; then
  fact smart none
  ${required ? sh`tell "it has no SMART"` : sh`:`}
else
  fact smart "\${verdict:-no verdict}"
  case $verdict in PASSED | OK | '') ;; *) tell "it says $verdict" ;; esac
  [ $((status & 8)) = 0 ] || case $why in '') tell "it says that it is failing" ;; esac
  [ $((status & 16)) = 0 ] || tell "an attribute is at its threshold"
fi
fact "bad sectors" "$bad"
fact wear "\${wear:-unknown}"
fact temperature "\${warm:-unknown}"
[ "$bad" -le ${maxBadSectors} ] || tell "$bad bad sectors"
[ "\${wear:-0}" -le ${maxWear} ] || tell "$wear percent of its life are used"
${maxTemperature === undefined ? sh`` : sh`[ "\${warm:-0}" -le ${maxTemperature} ] || tell "it has $warm degrees"`}
[ -z "$why" ] || refuse DISK_FAILING ${`the disk with the ${diskName(disk).kind} ${diskName(disk).value} is not healthy: `}"$why$K_NL$(cat "$K_TMP/smart")"
fact health good`,
    tools: [{ command: "smartctl", package: "smartmontools" }],
    timeout: 60,
  }),
});
