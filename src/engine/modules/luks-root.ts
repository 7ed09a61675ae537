import { z } from "zod";
import { defineModule } from "../step/define.ts";
import { DiskId, diskName, luksUuid, mappingName, PartitionName, partitionGuid } from "../step/disk-names.ts";
import { findRoot } from "../step/fragments/disk.ts";
import { stepOfFormat, type DeviceFormat } from "../step/fragments/format.ts";
import { keyFileOf, keyFits, luksFolder, makeKeyFile, recoveryFileOf, strongKey } from "../step/fragments/luks.ts";
import { initrdHostKey, unfinishedLabel, unlockPort } from "../step/fragments/os-unlock.ts";
import { sh } from "../step/sh.ts";

const args = z.strictObject({
  disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size."),
  partition: PartitionName.default("root").describe("The partition, as given to disk.partitioned."),
  unlock: z
    .enum(["ssh"])
    .default("ssh")
    .describe("How the container is unlocked at boot, besides at the console: over SSH."),
});

/**
 * ```yaml
 * luks.root: { disk: { serial: S3Z8NB0K } }
 * ```
 * A LUKS2 container for a machine's own system, made and opened on the live system that os.installed works from. The step
 * also makes the SSH host key that the installed system uses while it waits to be unlocked. Key file and host key are in
 * `/etc/kcore/luks` of the live system, and os.installed moves them to the installed system. Until then the header's label
 * is `kcore-unfinished`: after a power cut the key is lost, and the next live system makes the container again. A
 * container without that label is never changed. The fact `unlock` has the UUID, the port and the host key.
 */
export const luksRoot = defineModule({
  name: "luks.root",
  summary: "Keeps a LUKS2 container for a machine's own system, made and opened from a live system.",
  alsoKnownAs: ["luks_device", "crypttab", "cryptsetup", "encryption"],
  args,
  refusals: [
    "DISK_AMBIGUOUS",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "DISK_NOT_SAVED",
    "FILESYSTEM_DIFFERS",
    "FILE_NO_PARENT",
    "FILE_PARENT_UNSAFE",
    "LUKS_KEY_MISSING",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
  ],
  step: ({ disk, partition }, context) => {
    const guid = partitionGuid(context, { disk, partition });
    const uuid = luksUuid(guid);
    const mapping = mappingName(uuid);
    const keyFile = keyFileOf(uuid);
    const hostKey = initrdHostKey(uuid);
    const name = diskName(disk).value;
    const format: DeviceFormat = {
      find: findRoot({ disk, partition }, context),
      guid,
      type: "crypto_LUKS",
      uuid,
      wanted: "a LUKS2 container",
      grant: name,
      // The recovery file of a former container of this UUID is removed: luks.escrowed would take it for this
      // container's.
      prepare: sh`rm -f ${recoveryFileOf(uuid)} || exit 1
${makeKeyFile(keyFile)}`,
      make: sh`cryptsetup luksFormat -q --type luks2 --uuid ${uuid} --label ${unfinishedLabel} --key-file ${keyFile} ${[...strongKey]}`,
      tool: { command: "cryptsetup", package: "cryptsetup-bin" },
    };
    const resource = { is: "disk", name } as const;
    const files = [keyFile, hostKey].map((path) => ({ is: "path", path }) as const);
    return {
      ...stepOfFormat(format, {
        read: sh`container=finished key=absent
if [ -z "$running" ] && [ "$type:$uuid:$label" = ${`crypto_LUKS:${uuid}:${unfinishedLabel}`} ]; then
  container=closed
  for path in "/sys/class/block/$name/holders/"*; do
    { [ ! -r "$path/dm/name" ] || [ "$(cat "$path/dm/name")" != ${mapping} ]; } || container=open
  done
  if ${keyFits(keyFile)}; then
    key=fits
  # If the disk has a boot loader, the container holds a system.
  elif [ "$(dd if="$disk" bs=440 count=1 2>/dev/null | tr -d '\000' | wc -c)" -eq 0 ] && [ ! -e "$mark" ]; then
    mark=$K_TMP/half
    : >"$mark"
  fi
  [ "$container:$key" = open:fits ] && [ -s ${`${hostKey}.pub`} ] || container=closed
fi`,
        facts: sh`case $container in finished | open) fact container 'in order' ;; *) fact container closed ;; esac
hostkey=
if [ -r ${`${hostKey}.pub`} ]; then read -r hostkey <${`${hostKey}.pub`}; fi
fact unlock "\${hostkey:+${`${uuid} ${unlockPort}`} $hostkey}"`,
        judge: sh`[ -n "$todo" ] || [ "$container" != closed ] || [ "$key" = fits ] ||
  refuse LUKS_KEY_MISSING "the container on $device is not marked as finished, but the disk has a boot loader, and its key is not here: boot the machine from that disk"
[ -z "$todo" ] || have ssh-keygen || refuse TOOL_MISSING 'ssh-keygen is not on this node; package openssh-client has it'`,
        after: sh`if [ -n "$todo" ] || [ "$container" = closed ]; then
  if [ ! -e /dev/mapper/${mapping} ]; then
    cryptsetup open -q --type luks2 --key-file ${keyFile} "$device" ${mapping} </dev/null || exit 1
  fi
  rm -f ${hostKey} ${`${hostKey}.pub`}
  ssh-keygen -q -t ed25519 -N '' -C '' -f ${hostKey} </dev/null || exit 1
fi`,
      }),
      brings: true,
      effects: {
        writes: [resource, ...files, { is: "tree", path: luksFolder }],
        reads: [resource, ...files, { is: "program", name: "cryptsetup" }],
      },
      want: { type: format.type, uuid, container: "in order" },
      timeout: 180,
    };
  },
});
