import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { DiskId, diskName, PartitionName } from "../step/disk-names.ts";
import { Duration } from "../step/fields.ts";
import { rebootNode } from "../step/fragments/boot.ts";
import { findRoot } from "../step/fragments/disk.ts";
import { sh, type Sh } from "../step/sh.ts";

/**
 * ```yaml
 * os.booted:
 *   disk: { serial: S3Z8NB0K }
 * ```
 * After os.installed: the machine leaves its live system and boots from its own disk, where the run continues. A second
 * step with `boot: false` then checks that the machine has booted from this disk: the firmware may have started the live
 * system again.
 */
export const osBooted = defineModule({
  name: "os.booted",
  summary: "Boots the machine from its own disk, unless it runs from there.",
  alsoKnownAs: ["reboot", "wait_for_connection"],
  args: z.strictObject({
    disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size."),
    root: PartitionName.default("root").describe("The partition of the root filesystem."),
    boot: z
      .boolean()
      .default(true)
      .describe("false: only check that the machine runs from the disk, after a step that booted it."),
    timeout: Duration.default(900).describe("How long the machine may take to come back."),
  }),
  refusals: ["DISK_AMBIGUOUS", "DISK_NOT_FOUND", "LIVE_UNSUITED", "PARTITION_NOT_FOUND", "TOOL_MISSING"],
  step: ({ disk, root, boot, timeout }, context) => ({
    effects: { writes: boot ? [{ is: "boot" }] : [], reads: [{ is: "disk", name: diskName(disk).value }] },
    want: { root: "on its own disk" },
    probe: sh`${findRoot({ disk, partition: root }, context)}
${boot ? sh`` : notYet(disk)}
if [ -n "$running" ]; then fact root "on its own disk"; else fact root elsewhere; fi`,
    ...(boot ? { ...rebootNode, timeout } : {}),
  }),
});

function notYet(disk: DiskId): Sh {
  const { kind, value } = diskName(disk);
  return sh`[ -n "$running" ] || ! unsure || exit 1
[ -n "$running" ] || refuse LIVE_UNSUITED ${`this machine does not run from its own disk: its firmware has to try the disk with the ${kind} ${value} first`}`;
}
