import { z } from "zod";
import { defineModule } from "../step/define.ts";
import {
  carrierFields,
  deviceFrom,
  deviceGuid,
  deviceName,
  luksUuid,
  mappingName,
  namesOneDevice,
  type DeviceOf,
} from "../step/disk-names.ts";
import { findDevice } from "../step/fragments/disk.ts";
import { stepOfFormat, type Format } from "../step/fragments/format.ts";
import { readFstab, writeFstab } from "../step/fragments/fstab.ts";
import { crypttabLine, keyFileOf, strongKey } from "../step/fragments/luks.ts";
import { underSystemd } from "../step/fragments/mount-unit.ts";
import { sh } from "../step/sh.ts";

const args = z
  .strictObject({
    ...carrierFields,
    discard: z
      .boolean()
      .default(false)
      .describe("Does the disk hear of blocks that are free? It then shows which are (crypttab(5))."),
  })
  .refine((given) => deviceFrom(given) !== undefined, namesOneDevice);

/**
 * ```yaml
 * luks.opened: { disk: { serial: S3Z8NB0K }, partition: data }
 * ```
 * A LUKS2 container, open now and at every boot (crypttab) by a key of 512 bits in `/etc/kcore/luks`, which is made on the node and never
 * leaves it. What lies on it is told so by `encrypted: true`. Its UUID is made of that of what carries it, which proves later that
 * kcore made it; what holds anything else is refused unless its disk, `VG/LV` or `md/ARRAY` was granted by name (requirement F-18).
 */
export const luksOpened = defineModule({
  name: "luks.opened",
  summary: "Keeps a LUKS2 container on a partition, logical volume or array, open now and at every boot.",
  args,
  refusals: [
    "ARRAY_NOT_FOUND",
    "DISK_AMBIGUOUS",
    "DISK_IN_USE",
    "DISK_NOT_FOUND",
    "DISK_NOT_SAVED",
    "FILESYSTEM_DIFFERS",
    "FILE_NO_PARENT",
    "FILE_PARENT_UNSAFE",
    "LUKS_KEY_MISSING",
    "NIXOS_MANAGED",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
    "VOLUME_NOT_FOUND",
  ],
  step: ({ discard, ...given }, context) => {
    const device = deviceFrom(given) as DeviceOf;
    const guid = deviceGuid(context, device);
    const uuid = luksUuid(guid);
    const mapping = mappingName(uuid);
    const name = deviceName(device);
    const keyFile = keyFileOf(uuid);
    const crypttab = "/etc/crypttab";
    const line = crypttabLine(uuid, { discard });
    const format: Format = {
      find: findDevice(device, context),
      guid,
      type: "crypto_LUKS",
      uuid,
      wanted: "a LUKS2 container",
      grant: name,
      // The key is on the disk before anything is locked with it; one that is there may open the container that was begun.
      // The mark tells what comes next that nobody has used it yet: what was never written reads as noise.
      prepare: sh`parent_of ${keyFile} 1
safe_parents ${keyFile}
if [ ! -s ${keyFile} ]; then
  (umask 077 && head -c 64 /dev/urandom >"$K_TMP/key") && put_file "$K_TMP/key" ${keyFile} 0400 root root || exit 1
  rm -f "$K_TMP/key"
fi
chmod 0700 "$(dirname ${keyFile})" && : >"$K_STATE/fresh/"${uuid} && sync || exit 1`,
      make: sh`cryptsetup luksFormat -q --type luks2 --uuid ${uuid} --key-file ${keyFile} ${[...strongKey]}`,
      tool: { command: "cryptsetup", package: "cryptsetup-bin" },
    };
    const place = { is: "disk", name } as const;
    return {
      ...stepOfFormat(format, {
        read: sh`opened=no key=absent
for path in "/sys/class/block/$name/holders/"*; do
  { [ ! -r "$path/dm/name" ] || [ "$(cat "$path/dm/name")" != ${mapping} ]; } || opened=yes
done
if [ "$type:$uuid" = ${`crypto_LUKS:${uuid}`} ] && [ -f ${keyFile} ]; then
  if cryptsetup open --test-passphrase -q --key-file ${keyFile} "$device" 2>/dev/null; then key=fits; else key='does not fit'; fi
fi
${readFstab(crypttab, { source: mapping })}`,
        facts: sh`fact opened "$opened"
fact key "$key"
fact crypttab "$fstab"`,
        judge: sh`not_nixos ${crypttab}
[ -n "$todo" ] || [ "$key" = fits ] ||
  refuse LUKS_KEY_MISSING ${`the container ${uuid} is there, but its key file ${keyFile} does not open it: `}"$key"`,
        after: sh`if [ "$fstab" != ${line} ]; then
  ${writeFstab(crypttab, { source: mapping }, line)}
  if ${underSystemd}; then systemctl daemon-reload || exit 1; fi
fi
if [ "$opened" = no ]; then
  cryptsetup open -q --type luks2 --key-file ${keyFile} ${discard ? ["--allow-discards"] : []} "$device" ${mapping} || exit 1
fi`,
      }),
      brings: true,
      reach: {
        changes: [place, { is: "path", path: crypttab }, { is: "path", path: keyFile }],
        restsOn: [
          place,
          { is: "path", path: crypttab },
          { is: "path", path: keyFile },
          { is: "program", name: "cryptsetup" },
        ],
      },
      want: { type: format.type, uuid, opened: "yes", key: "fits", crypttab: line },
      timeout: 120,
    };
  },
});
