import { Command, Option } from "commander";
import { usageError } from "#errors/problem.ts";
import { addClusterOptions, addResultOption, caPassphrase, collect, parseCount } from "../options.ts";
import type { BackupRequest, RestoreRequest } from "./backup.ts";

type BackupFlags = BackupRequest & { readonly verify?: boolean; readonly identity?: string };

/** `kcore cluster backup|restore`: a whole cluster in a file. */
export function clusterCommand(): Command {
  const cluster = new Command("cluster")
    .description(
      "Back up and restore a cluster: its controllers' state, and what this machine alone has: its CA, the operator's key, recovery keys",
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore cluster backup prod.age
  kcore cluster backup /srv/backups --keep 14 --recipient age1…
  kcore cluster backup --verify prod.age
  kcore cluster restore prod.age`,
    );
  withKeys(addClusterOptions(cluster.command("backup <file>")))
    .description(
      "Write keys and state of a cluster to a new encrypted file, or into a folder; --verify tries an existing one",
    )
    .option(
      "--recipient <recipient>",
      "encrypt to this age recipient (age1…), not by the CA's passphrase (repeatable)",
      collect,
    )
    .addOption(new Option("--keep <n>", "in a folder, keep the newest n backups of the cluster").argParser(parseCount))
    .option("--keys-only", "leave out the controllers' state, as when no controller answers")
    .addOption(
      new Option("--verify", "restore an existing backup into a scratch controller, and compare").conflicts([
        "recipient",
        "keep",
        "keysOnly",
      ]),
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore cluster backup prod.age
  kcore cluster backup /srv/backups --keep 14 --recipient age1…
  kcore cluster backup --verify prod.age

age -d opens the file, too. Keep the file on another machine, and the passphrase somewhere else.`,
    )
    .action(async (target: string, { verify = false, identity, ...flags }: BackupFlags) => {
      if (verify) return (await import("./drill.ts")).verifyBackup(target, { ...flags, ...(identity && { identity }) });
      if (identity !== undefined) throw usageError("--identity opens a backup", "kcore cluster backup --verify FILE");
      return (await import("./backup.ts")).backUpCluster(target, flags);
    });
  withKeys(cluster.command("restore <file>"))
    .description("Put back a context from its backup; an existing context is not replaced")
    .option("--state <file>", "write only the controllers' state, to this new file, for kcore controller restore")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore cluster restore prod.age\n  kcore cluster restore prod.age --state prod-state",
    )
    .action(async (file: string, flags: RestoreRequest) => (await import("./backup.ts")).restoreCluster(file, flags));
  return cluster;
}

/** The flags that open an archive, and `-o`. */
function withKeys(command: Command): Command {
  return addResultOption(command)
    .option(...caPassphrase)
    .option("--identity <file>", "the age identity that opens the backup; else KCORE_AGE_IDENTITY, else kcore's own");
}
