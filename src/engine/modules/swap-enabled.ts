import { z } from "zod";
import { defineModule } from "../step/define.ts";
import {
  deviceFields,
  deviceFrom,
  deviceGuid,
  deviceName,
  oneDeviceMessage,
  type DeviceOf,
} from "../step/disk-names.ts";
import { findDevice } from "../step/fragments/disk.ts";
import { formatRefusals, stepOfFormat, type DeviceFormat } from "../step/fragments/format.ts";
import { readFstab, writeFstab } from "../step/fragments/fstab.ts";
import { underSystemd } from "../step/fragments/mount-unit.ts";
import { sh } from "../step/sh.ts";
import { uuidOf } from "../step/uuid.ts";

const args = z
  .strictObject({
    ...deviceFields,
    priority: z
      .int()
      .min(-1)
      .max(32_767)
      .default(-1)
      .describe("The area's priority; -1: behind areas that were there before."),
  })
  .refine((given) => deviceFrom(given) !== undefined, oneDeviceMessage);

/**
 * ```yaml
 * swap.enabled: { disk: { serial: S3Z8NB0K }, partition: swap }
 * ```
 * A swap area that is in use, now and at every boot (fstab). Its UUID is derived from the UUID of the partition, array or
 * LUKS container, or from the names of volume group and logical volume. Other contents are refused unless the disk,
 * `VG/LV` or `md/ARRAY` was granted by name (requirement F-18).
 */
export const swapEnabled = defineModule({
  name: "swap.enabled",
  summary:
    "Keeps a swap area on a partition, logical volume, array or opened LUKS container, in use now and at every boot.",
  alsoKnownAs: ["swap", "mount.swap", "mkswap", "swapon"],
  args,
  refusals: [...formatRefusals, ...(["FILE_NO_PARENT", "FILE_PARENT_UNSAFE", "NIXOS_MANAGED"] as const)].toSorted(),
  step: (given, context) => {
    const device = deviceFrom(given) as DeviceOf;
    const { priority } = given;
    const guid = deviceGuid(context, device);
    const uuid = uuidOf(guid, "swap");
    const name = deviceName(device);
    const format: DeviceFormat = {
      find: findDevice(device, context),
      guid,
      type: "swap",
      uuid,
      wanted: "a swap area",
      grant: name,
      make: sh`mkswap -U ${uuid}`,
      tool: { command: "mkswap", package: "util-linux" },
    };
    const inUse = priority === -1 ? "yes" : `priority ${priority}`;
    const source = `UUID=${uuid}`;
    const line = `${source} none swap ${priority === -1 ? "sw" : `sw,pri=${priority}`},nofail 0 0`;
    const fstab = "/etc/fstab";
    const steps = stepOfFormat(format, {
      read: sh`active=$(while read -r path kind size used priority; do
  case $path in /*) [ "$(readlink -f "$path")" != "$device" ] || echo ${priority === -1 ? "yes" : sh`"priority $priority"`} ;; esac
done </proc/swaps)
${readFstab(fstab, { source })}`,
      facts: sh`fact fstab "$fstab"
fact active "\${active:-no}"`,
      judge: sh`not_nixos ${fstab}`,
      after: sh`if [ "$fstab" != ${line} ]; then
  ${writeFstab(fstab, { source }, line)}
  if ${underSystemd}; then systemctl daemon-reload || exit 1; fi
fi
# An area in use is turned off only to change its priority: swapoff moves its contents back into memory.
if [ "$active" != ${inUse} ]; then
  [ -z "$active" ] || swapoff "$device" || exit 1
  swapon ${priority === -1 ? [] : ["-p", String(priority)]} "$device" || exit 1
fi`,
    });
    const resource = { is: "disk", name } as const;
    return {
      ...steps,
      brings: true,
      effects: {
        writes: [resource, { is: "path", path: fstab }],
        reads: [resource, { is: "path", path: fstab }, { is: "program", name: "mkswap" }],
      },
      want: { type: "swap", uuid, fstab: line, active: inUse },
      tools: [...steps.tools, { command: "swapon", package: "mount" }],
      timeout: 120,
    };
  },
});
