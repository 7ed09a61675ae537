import { Command } from "commander";
import { addProjectOption, addResultOption, addViewOptions, caPassphrase } from "../options.ts";
import { addChangeOptions } from "../watch/run-options.ts";
import type { RecoveryFlags } from "./recovery-key.ts";
import type { RestoreFlags } from "./restore-table.ts";

/** `kcore disk recovery-key|unlock|restore-table`. */
export function diskCommand(): Command {
  const disk = new Command("disk").description("Recovery keys and saved partition tables of nodes' disks").addHelpText(
    "after",
    `
Examples:
  kcore disk recovery-key n1                 which encrypted disks of n1 have a key here
  kcore disk recovery-key n1 S3Z8NB0K        the key itself
  kcore disk unlock n1                       opens the encrypted root of n1, which waits for that at boot
  kcore disk restore-table n1                what was saved of n1's disks before they were wiped
  kcore disk restore-table n1 S3Z8NB0K       puts the disk's partition table, headers and labels back`,
  );
  addResultOption(addProjectOption(disk.command("recovery-key <node> [disk]")))
    .description("Show the recovery key of an encrypted disk; each look is recorded (kcore audit show)")
    .option(...caPassphrase)
    .addHelpText(
      "after",
      `
Examples:
  kcore disk recovery-key n1
  kcore disk recovery-key n1 S3Z8NB0K
  kcore disk recovery-key n1 5c1c2e1a-5b7e-5a0e-8a37-2d3d1b1f0a11 --passphrase-file passphrase

DISK is a disk's serial number, or the container's UUID. The key opens the container where a passphrase is asked for, and on a
node: cryptsetup open /dev/disk/by-uuid/UUID luks-UUID. Without DISK no key is shown, and no passphrase is needed.`,
    )
    .action(async (node: string, name: string | undefined, flags: RecoveryFlags) =>
      (await import("./recovery-key.ts")).showRecoveryKey(node, name, flags),
    );
  addResultOption(addProjectOption(disk.command("unlock <node>")))
    .description(
      "Unlock the encrypted root of a machine that waits for it at boot, over SSH; recorded (kcore audit show)",
    )
    .option(...caPassphrase)
    .addHelpText(
      "after",
      `
Examples:
  kcore disk unlock n1
  kcore disk unlock n1 --passphrase-file passphrase

After a power cut or a reboot by hand a machine whose root kcore encrypted (encryptOs) waits in its initrd, at port 2222. kcore
sends the recovery key that is kept here only to a machine that shows the host key of that initrd. A run that deploys or reboots
the machine unlocks the root by itself. At the machine's console, type the key that kcore disk recovery-key shows.`,
    )
    .action(async (node: string, flags: RecoveryFlags) => (await import("./unlock.ts")).unlockDisk(node, flags));
  addViewOptions(addChangeOptions(addProjectOption(disk.command("restore-table <node> [disk]"))))
    .description("Put back what was saved of a disk before it was wiped; without DISK, list what is saved")
    .option("--list", "list what is saved of DISK, and put nothing back")
    .option("--save <id>", "this save, by the beginning of its id; else the one from before the newest wipe")
    .option("--wait", "wait for a node that another run holds instead of refusing")
    .addHelpText(
      "after",
      `
Examples:
  kcore disk restore-table n1
  kcore disk restore-table n1 S3Z8NB0K --dry-run
  kcore disk restore-table n1 S3Z8NB0K --grant S3Z8NB0K:9f2c51d07ab3e846
  kcore disk restore-table n1 S3Z8NB0K --save 3fa9c1 --output json

DISK is what a grant named: a disk's serial number, WWN, link in by-id or by-path, a logical volume VG/LV, an array md/NAME. Before kcore
wipes anything that was granted, it saves here what it is about to destroy: of the disk and of each partition the first 4 MiB and the
last MiB, and LUKS headers whole. These come back: partition tables, LUKS headers with their key slots, LVM's metadata, the labels of
md and ZFS. Contents of files do not come back where later writes, a mkfs that discards,
or a new container overwrote them. A disk in use is refused; one that holds data needs a --grant; the present tables are saved first, too.`,
    )
    .action(async (node: string, name: string | undefined, flags: RestoreFlags) => {
      process.exitCode = await (await import("./restore-table.ts")).restoreTable(node, name, flags);
    });
  return disk;
}
