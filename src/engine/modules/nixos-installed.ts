import { z } from "zod";
import { fileBlob } from "../step/blob.ts";
import { defineModule } from "../step/define.ts";
import { deviceGuid, DiskId, diskName, PartitionName } from "../step/disk-names.ts";
import { AbsolutePath, Sha256, UserName } from "../step/fields.ts";
import { findRoot } from "../step/fragments/disk.ts";
import { liveFunctions } from "../step/fragments/os-debian.ts";
import { bootDiskFirst, judgeNixos, putFlake, runInstaller, copyToNixos } from "../step/fragments/os-nixos.ts";
import { finishedLabel, finishTarget, mountTarget, targetFolder } from "../step/fragments/os-target.ts";
import { sh, shLines } from "../step/sh.ts";

const InFlake = z
  .string()
  .regex(
    /^[A-Za-z0-9_][A-Za-z0-9._+-]*(\/[A-Za-z0-9_][A-Za-z0-9._+-]*)*$/,
    "must be a path below the flake, of plain names",
  );

const exampleFile = { path: "flake.nix", file: "/home/ops/dc1/.kcore/n1/flake.nix", sha256: "0".repeat(64), size: 512 };

const FlakeFile = z
  .strictObject({
    path: InFlake.describe("The file's path in the flake."),
    file: AbsolutePath.describe("The file on the bastion."),
    sha256: Sha256.describe("The file's SHA-256."),
    size: z.int().min(0).describe("The file's size in bytes."),
  })
  .meta({ examples: [exampleFile] });

const args = z.strictObject({
  disk: DiskId.describe("The disk, by serial, wwn, byId, busPath, model or size."),
  root: PartitionName.default("root").describe("The partition of the root filesystem, formatted as ext4."),
  esp: PartitionName.default("esp").describe("The EFI system partition, formatted as vfat."),
  flake: z
    .strictObject({
      name: z
        .string()
        .regex(/^[A-Za-z0-9][A-Za-z0-9._-]*$/, "must be the name of a machine")
        .describe("The machine: nixosConfigurations.NAME."),
      files: z.array(FlakeFile).min(1).describe("All files of the flake."),
    })
    .describe("The output of the action nixos.config.")
    .meta({ examples: [{ name: "n1", files: [exampleFile] }] }),
  user: UserName.default("root").describe("The user as whom kcore logs in."),
  nixpkgs: z
    .string()
    .regex(/^[\x21-\x7e]*$/, "must be one word")
    .default("")
    .describe(
      "A flake in place of the flake's input nixpkgs, such as path:/nix/store/…-source; empty: the flake's own.",
    ),
  offline: z.boolean().default(false).describe("Nothing is fetched: the live system's store has all that is needed."),
});

/**
 * ```yaml
 * nixos.installed:
 *   disk: { serial: S3Z8NB0K }
 *   flake:
 *     name: n1
 *     files:
 *       - { path: flake.nix, file: /srv/dc1/nixos/flake.nix, sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855, size: 1 }
 * ```
 * NixOS on a machine's own disk, by nixos-install of a live system such as the NixOS installer. The flake is copied to
 * /etc/nixos of the new system, and the live system's host keys to its /etc/ssh. A killed installation continues with the
 * paths in the new store; after a reboot the installation begins anew, since a power cut may have damaged these paths. A
 * machine that runs from this disk is in order, even if its system has changed since.
 */
export const nixosInstalled = defineModule({
  name: "nixos.installed",
  summary: "Keeps NixOS installed on a machine's own disk, from a flake, by the live system's nixos-install.",
  alsoKnownAs: ["nixos-install", "nixos-anywhere"],
  args,
  refusals: [
    "DISK_AMBIGUOUS",
    "DISK_NOT_FOUND",
    "LIVE_UNSUITED",
    "NIXOS_INSTALL_FAILED",
    "OS_FOUND",
    "PARTITION_NOT_FOUND",
    "TOOL_MISSING",
  ],
  step: ({ disk, root, esp, flake: { name, files }, user, nixpkgs, offline }, context) => {
    const find = findRoot({ disk, partition: root }, context);
    const resource = { is: "disk", name: diskName(disk).value } as const;
    const espGuid = deviceGuid(context, { disk, partition: esp });
    return {
      effects: { writes: [resource, { is: "tree", path: targetFolder }], reads: [resource, { is: "system" }] },
      want: { system: "installed" },
      probe: sh`${find}
if [ -n "$running" ] || [ "$(blkid -p -o value -s LABEL "$device" 2>/dev/null)" = ${finishedLabel} ]; then fact system installed; else fact system absent; fi`,
      guard: sh`${liveFunctions}
${judgeNixos(user)}`,
      apply: sh`${find}
esp_name=$(partition_of ${espGuid})
[ -n "$esp_name" ] || refuse PARTITION_NOT_FOUND ${`there is no partition ${esp} on the disk`}
esp=$(device_of "$esp_name")
${liveFunctions}
${judgeNixos(user)}
${putFlake}
${shLines(files.map((file) => sh`put_flake ${file.path} ${fileBlob(file)}`))}
${mountTarget}
read -r boot </proc/sys/kernel/random/boot_id
begun=
[ ! -e "$t/.kcore-unfinished" ] || read -r begun <"$t/.kcore-unfinished"
if [ -z "$begun" ]; then
  empty "$t" || exit 1
elif [ "$begun" = "$boot" ]; then
  note "an installation was stopped here in this boot: going on with what it has"
else
  note "an installation was cut off here: beginning anew"
  empty "$t" || exit 1
fi
echo "$boot" >"$t/.kcore-unfinished" && sync -f "$t" || exit 1
mkdir -p "$t/boot/efi" && mount -t vfat "$esp" "$t/boot/efi" || exit 1
${copyToNixos}
${runInstaller({ name, nixpkgs, offline })}
${bootDiskFirst(espGuid)}
${finishTarget}`,
      tools: [
        { command: "mount", package: "mount" },
        { command: "e2label", package: "e2fsprogs" },
        { command: "ip", package: "iproute2" },
      ],
      timeout: 7200,
    };
  },
});
