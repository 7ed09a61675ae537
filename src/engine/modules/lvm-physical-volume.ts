import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { diskName, partitionGuid, PartitionOf, physicalVolumeUuid } from "../step/disk-names.ts";
import { diskTools, findDevice } from "../step/fragments/disk.ts";
import { factsOfFormat, judgeFormat, lookAt, makeFormat, settle, type Format } from "../step/fragments/format.ts";
import { quietLvm } from "../step/fragments/lvm.ts";
import { sh } from "../step/sh.ts";

const args = z.strictObject(PartitionOf.shape);

/**
 * ```yaml
 * lvm.physical_volume: { disk: { serial: S3Z8NB0K }, partition: data }
 * ```
 * The physical volume's UUID is made of the partition's, which proves later that kcore made it. A partition that holds
 * anything else is refused unless its disk was granted by name (requirement F-18).
 */
export const lvmPhysicalVolume = defineModule({
  name: "lvm.physical_volume",
  summary: "Keeps an LVM physical volume on a partition, which must be blank or granted.",
  args,
  refusals: [
    "DISK_AMBIGUOUS",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "FILESYSTEM_DIFFERS",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
  ],
  step: ({ disk, partition }, context) => {
    const guid = partitionGuid(context, { disk, partition });
    const uuid = physicalVolumeUuid(guid);
    const name = diskName(disk).value;
    const format: Format = {
      find: sh`${quietLvm}
${findDevice({ disk, partition }, context)}`,
      guid,
      type: "LVM2_member",
      uuid,
      wanted: "a physical volume",
      grant: name,
      make: sh`pvcreate -q -y --norestorefile -u ${uuid}`,
      tool: { command: "pvcreate", package: "lvm2" },
    };
    const place = { is: "disk", name } as const;
    return {
      reach: { changes: [place], restsOn: [place, { is: "program", name: "pvcreate" }] },
      want: { type: format.type, uuid },
      probe: sh`${lookAt(format)}
${factsOfFormat}`,
      guard: sh`${lookAt(format)}
${judgeFormat(format)}`,
      apply: sh`${lookAt(format)}
${judgeFormat(format)}
${makeFormat(format)}
${settle}`,
      tools: diskTools,
      timeout: 120,
    };
  },
});
