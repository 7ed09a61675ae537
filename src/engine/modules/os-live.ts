import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { DiskId, diskName, partitionGuid, PartitionName } from "../step/disk-names.ts";
import { UserName } from "../step/fields.ts";
import { findDisk, readRunning } from "../step/fragments/disk.ts";
import { reportLive } from "../step/fragments/os-nixos.ts";
import { sh } from "../step/sh.ts";

/**
 * ```yaml
 * os.live: { disk: { serial: S3Z8NB0K } }
 * ```
 * Reports as facts the parts of a live system that a NixOS configuration has to take over. `network` has a
 * systemd.network(5) file for each card, `device` a stable name of the disk, `hardware` the output of
 * nixos-generate-config. Further facts are `hostKeys`, `rootKeys`, `userKeys`, `consoles` and `release`. If the machine
 * runs from this disk already, the fact `running` is yes, and all these facts are missing. The module changes nothing.
 */
export const osLive = defineModule({
  name: "os.live",
  summary: "Tells what a NixOS configuration has to take over from the live system that a machine runs.",
  alsoKnownAs: ["live system", "rescue"],
  args: z.strictObject({
    disk: DiskId.describe("The disk that the system will be on, by serial, wwn, byId, busPath, model or size."),
    root: PartitionName.default("root").describe("The partition of the root filesystem."),
    user: UserName.default("root").describe("The user as whom kcore logs in."),
  }),
  refusals: ["DISK_AMBIGUOUS", "DISK_NOT_FOUND", "LIVE_UNSUITED", "TOOL_MISSING"],
  step: ({ disk, root, user }, context) => ({
    effects: { writes: [], reads: [{ is: "disk", name: diskName(disk).value }, { is: "system" }] },
    want: { live: "told" },
    probe: sh`${findDisk(disk)}
running= name=$(partition_of ${partitionGuid(context, { disk, partition: root })})
if [ -n "$name" ]; then
  ${readRunning}
fi
if [ -n "$running" ]; then
  fact running yes
else
  fact running no
  ${reportLive(user)}
fi
fact live told`,
    timeout: 300,
  }),
});
