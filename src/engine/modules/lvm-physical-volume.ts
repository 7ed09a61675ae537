import { z } from "zod";
import { defineModule } from "../step/define.ts";
import {
  deviceFields,
  deviceFrom,
  deviceGuid,
  deviceName,
  oneDeviceMessage,
  physicalVolumeUuid,
  type DeviceOf,
} from "../step/disk-names.ts";
import { findDevice } from "../step/fragments/disk.ts";
import { formatRefusals, stepOfFormat, type DeviceFormat } from "../step/fragments/format.ts";
import { quietLvm } from "../step/fragments/lvm.ts";
import { sh } from "../step/sh.ts";

const args = z.strictObject(deviceFields).refine((given) => deviceFrom(given) !== undefined, oneDeviceMessage);

/**
 * ```yaml
 * lvm.physical_volume: { disk: { serial: S3Z8NB0K }, partition: data }
 * ```
 * The physical volume's UUID is derived from the UUID of the partition, array or LUKS container, which proves later that
 * kcore made the volume. Other contents are refused unless the disk, or `md/ARRAY`, was granted by name (requirement F-18).
 */
export const lvmPhysicalVolume = defineModule({
  name: "lvm.physical_volume",
  summary:
    "Keeps an LVM physical volume on a partition, array or opened LUKS container, which must be blank or granted.",
  alsoKnownAs: ["lvg", "lvm.pv_present", "pvcreate"],
  args,
  refusals: formatRefusals.toSorted(),
  step: (given, context) => {
    const device = deviceFrom(given) as DeviceOf;
    const guid = deviceGuid(context, device);
    const uuid = physicalVolumeUuid(guid);
    const name = deviceName(device);
    const format: DeviceFormat = {
      find: sh`${quietLvm}
${findDevice(device, context)}`,
      guid,
      type: "LVM2_member",
      uuid,
      wanted: "a physical volume",
      grant: name,
      make: sh`pvcreate -q -y --norestorefile -u ${uuid}`,
      tool: { command: "pvcreate", package: "lvm2" },
    };
    const resource = { is: "disk", name } as const;
    return {
      ...stepOfFormat(format),
      effects: { writes: [resource], reads: [resource, { is: "program", name: "pvcreate" }] },
      want: { type: format.type, uuid },
      timeout: 120,
    };
  },
});
