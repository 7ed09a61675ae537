import { z } from "zod";
import { defineModule, type Step } from "../step/define.ts";
import {
  carrierFields,
  deviceFrom,
  deviceGuid,
  deviceName,
  luksUuid,
  mappingName,
  oneDeviceMessage,
  type DeviceOf,
} from "../step/disk-names.ts";
import { findDevice } from "../step/fragments/disk.ts";
import { stepOfFormat, type DeviceFormat } from "../step/fragments/format.ts";
import { readFstab, writeFstab } from "../step/fragments/fstab.ts";
import {
  crypttabLine,
  keyFileOf,
  keyFits,
  makeKeyFile,
  recoveryFileOf,
  strongKey,
  tpmMarkOf,
} from "../step/fragments/luks.ts";
import {
  addByTpm,
  byTpm,
  dropKeyFile,
  bindTpm,
  requireTpm,
  pcrList,
  readTpm,
  unbindTpm,
  tpmFact,
} from "../step/fragments/luks-tpm.ts";
import { underSystemd } from "../step/fragments/mount-unit.ts";
import { sh } from "../step/sh.ts";

const args = z
  .strictObject({
    ...carrierFields,
    discard: z
      .boolean()
      .default(false)
      .describe("Does the disk hear of free blocks? The disk then shows which blocks are free (crypttab(5))."),
    unlock: z
      .enum(["keyFile", "tpm2"])
      .default("keyFile")
      .describe(
        "The way to open the container at boot: a key file on the node, or the machine's TPM 2.0 and no key on the node.",
      ),
    pcrs: z
      .array(z.int().min(0).max(23))
      .min(1)
      .optional()
      .describe(
        "For tpm2: the registers of which each must be as it is now (systemd-cryptenroll(1)); default [7], Secure Boot's.",
      ),
    state: z
      .enum(["opened", "closed"])
      .default("opened")
      .describe("closed: neither open nor in crypttab; key and contents stay. The device may be gone."),
  })
  .refine(({ unlock, pcrs }) => unlock === "tpm2" || pcrs === undefined, "pcrs belong to unlock: tpm2")
  .refine((given) => deviceFrom(given) !== undefined, oneDeviceMessage);

/**
 * ```yaml
 * luks.opened: { disk: { serial: S3Z8NB0K }, partition: data }
 * ```
 * A LUKS2 container, open now and at every boot (crypttab). A key file of 512 bits in `/etc/kcore/luks` opens the container;
 * the key is made on the node and never leaves it. With `unlock: tpm2` the machine's TPM opens the container
 * (systemd-cryptenroll(1)), and then the key file is removed. `unlock` can be changed while the container is in use: at every
 * moment key file or TPM opens it. After a change of the board or of Secure Boot only the recovery key remains. Steps for
 * the container's contents have `encrypted: true`. The container's UUID is derived from the UUID of its partition or array,
 * or from the names of its volume; a later run recognizes kcore's container by that UUID. Other contents are refused unless
 * the disk, `VG/LV` or `md/ARRAY` was granted by name (requirement F-18).
 */
export const luksOpened = defineModule({
  name: "luks.opened",
  summary: "Keeps a LUKS2 container on a partition, logical volume or array, open now and at every boot.",
  alsoKnownAs: ["luks_device", "crypttab", "cryptsetup", "encryption"],
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
    "TPM_MISSING",
    "VOLUME_NOT_FOUND",
  ],
  step: ({ discard, unlock, pcrs = [7], state, ...given }, context) => {
    const device = deviceFrom(given) as DeviceOf;
    const guid = deviceGuid(context, device);
    const uuid = luksUuid(guid);
    const mapping = mappingName(uuid);
    const name = deviceName(device);
    if (state === "closed") return closedStep(mapping, name);
    const keyFile = keyFileOf(uuid);
    const crypttab = "/etc/crypttab";
    const mark = tpmMarkOf(uuid);
    const line = crypttabLine(uuid, { discard, unlock });
    const isTpm = unlock === "tpm2";
    const registers = pcrList(pcrs);
    const makeKey = makeKeyFile(keyFile);
    // Without a fitting key file the TPM opens the container, as `judge` has checked. Then the TPM adds a key file's key.
    const ensureKey = sh`if [ "$key" != fits ]; then
  ${makeKey}
  ${addByTpm(keyFile)}
fi`;
    const bind = sh`parent_of ${mark} 1
safe_parents ${mark}
[ -e ${mark} ] || put_file /dev/null ${mark} 0400 root root || exit 1
if [ "$tpm" != ${tpmFact(registers)} ]; then
  ${ensureKey}
  ${bindTpm(keyFile, registers)}
fi`;
    const openBy = isTpm ? { key: "absent", marked: "yes", tpm: tpmFact(registers) } : { key: "fits", marked: "no" };
    const opener = isTpm ? byTpm : (["--key-file", keyFile] as const);
    const format: DeviceFormat = {
      find: findDevice(device, context),
      guid,
      type: "crypto_LUKS",
      uuid,
      wanted: "a LUKS2 container",
      grant: name,
      // The key file is flushed before luksFormat; an existing key file may belong to a container that a killed run has
      // begun. The mark tells the next step that the new container is unused, since its unwritten blocks read as noise. The
      // recovery file of a former container of this UUID is removed: luks.escrowed would take it for this container's.
      prepare: sh`: >"$K_STATE/fresh/"${uuid} && rm -f ${recoveryFileOf(uuid)} || exit 1
${makeKey}`,
      make: sh`cryptsetup luksFormat -q --type luks2 --uuid ${uuid} --key-file ${keyFile} ${[...strongKey]}`,
      tool: { command: "cryptsetup", package: "cryptsetup-bin" },
    };
    const resource = { is: "disk", name } as const;
    return {
      ...stepOfFormat(format, {
        read: sh`opened=no key=absent opens=no tpm=absent
[ ! -e ${keyFile} ] || key='does not fit'
for path in "/sys/class/block/$name/holders/"*; do
  { [ ! -r "$path/dm/name" ] || [ "$(cat "$path/dm/name")" != ${mapping} ]; } || opened=yes
done
if [ "$type:$uuid" = ${`crypto_LUKS:${uuid}`} ]; then
  if ${keyFits(keyFile)}; then key=fits; fi
  ${
    isTpm
      ? readTpm
      : sh`if [ "$key" != fits ]; then
${readTpm}
fi`
  }
fi
marked=no
[ ! -e ${mark} ] || marked=yes
${readFstab(crypttab, { source: mapping })}`,
        facts: sh`fact opened "$opened"
fact key "$key"
fact marked "$marked"
fact tpm "$tpm"
fact crypttab "$fstab"`,
        judge: sh`not_nixos ${crypttab}
${isTpm ? requireTpm : sh`:`}
[ -n "$todo" ] || [ "$key" = fits ] || [ "$opens" = yes ] ||
  refuse LUKS_KEY_MISSING ${`the container ${uuid} is there, but neither its key file ${keyFile} nor a TPM opens it: key file `}"$key; TPM $tpm"`,
        after: sh`[ -z "$todo" ] || key=fits tpm=absent
${isTpm ? bind : ensureKey}
if [ "$fstab" != ${line} ]; then
  ${writeFstab(crypttab, { source: mapping }, line)}
  if ${underSystemd}; then systemctl daemon-reload || exit 1; fi
fi
if [ "$opened" = no ]; then
  cryptsetup open -q --type luks2 ${[...opener]} ${discard ? ["--allow-discards"] : []} "$device" ${mapping} </dev/null || exit 1
fi
${isTpm ? dropKeyFile(keyFile) : unbindTpm(keyFile, mark)}`,
      }),
      brings: true,
      effects: {
        writes: [resource, ...[crypttab, keyFile, mark].map((path) => ({ is: "path", path }) as const)],
        reads: [
          resource,
          ...[crypttab, keyFile, mark].map((path) => ({ is: "path", path }) as const),
          { is: "program", name: "cryptsetup" },
          ...(isTpm ? [{ is: "program", name: "systemd-cryptenroll" } as const] : []),
        ],
      },
      want: { type: format.type, uuid, opened: "yes", crypttab: line, ...openBy },
      timeout: 180,
    };
  },
});

/** The container's UUID alone names it: a wiped disk has neither partition nor container. */
function closedStep(mapping: string, name: string): Step {
  const crypttab = "/etc/crypttab";
  const resources = [
    { is: "disk", name },
    { is: "path", path: crypttab },
  ] as const;
  return {
    effects: { writes: resources, reads: resources },
    want: { opened: "no", crypttab: "absent" },
    probe: sh`opened=no
[ ! -e ${`/dev/mapper/${mapping}`} ] || opened=yes
${readFstab(crypttab, { source: mapping })}
fact opened "$opened"
fact crypttab "$fstab"`,
    guard: sh`${readFstab(crypttab, { source: mapping })}
[ "$fstab" = absent ] || not_nixos ${crypttab}`,
    apply: sh`[ ! -e ${`/dev/mapper/${mapping}`} ] || cryptsetup close ${mapping} || exit 1
${readFstab(crypttab, { source: mapping })}
if [ "$fstab" != absent ]; then
  ${writeFstab(crypttab, { source: mapping }, "")}
  if ${underSystemd}; then systemctl daemon-reload || exit 1; fi
fi`,
    timeout: 60,
  };
}
