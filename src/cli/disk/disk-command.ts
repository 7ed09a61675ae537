import { Command } from "commander";
import { addProjectOption, addResultOption } from "../options.ts";
import type { RecoveryFlags } from "./recovery-key.ts";

/** `kcore disk recovery-key`. */
export function diskCommand(): Command {
  const disk = new Command("disk").description("What this machine keeps of nodes' disks").addHelpText(
    "after",
    `
Examples:
  kcore disk recovery-key n1                 which encrypted disks of n1 have a key here
  kcore disk recovery-key n1 S3Z8NB0K        the key itself`,
  );
  addResultOption(addProjectOption(disk.command("recovery-key <node> [disk]")))
    .description("Show the recovery key of an encrypted disk; each look is recorded (kcore audit show)")
    .option("--passphrase-file <file>", "for the CA's keys; else KCORE_CA_PASSPHRASE, else it is asked")
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
  return disk;
}
