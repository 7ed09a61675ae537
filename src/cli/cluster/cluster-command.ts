import { readFile, rm } from "node:fs/promises";
import { Command } from "commander";
import { isLocked } from "#engine/encrypted-values/identities.ts";
import { KcoreError } from "#errors/problem.ts";
import { gatherContext, noteBackup, parseBackup, placeBackup } from "#pki/context-backup.ts";
import { loadContext } from "#pki/contexts.ts";
import { replaceFile } from "#base/file.ts";
import { runTask } from "#base/tasks.ts";
import { addProjectOption, addResultOption, caPassphrase, type CommonFlags, type ResultFormat } from "../options.ts";
import { requireNew, writeError } from "../project/write-asked.ts";
import { withCaPassphrase } from "./ca-passphrase.ts";
import { contextHome } from "../process/kcore-home.ts";
import { describeCurrent } from "./create-command.ts";
import { printResult } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";

interface BackupFlags extends CommonFlags {
  readonly passphraseFile?: string;
  readonly output: ResultFormat;
}

/** `kcore cluster backup|restore`: this machine's part of a cluster, in a file. */
export function clusterCommand(): Command {
  const cluster = new Command("cluster")
    .description(
      "Back up and restore what this machine alone has of a cluster: its CA, the operator's key, recovery keys",
    )
    .addHelpText(
      "after",
      `
Examples:
  kcore cluster backup prod.age
  kcore cluster restore prod.age

kcore controller backup copies what the controllers know.`,
    );
  withPassphrase(addProjectOption(cluster.command("backup <file>")))
    .description("Write the context's keys to a new file, encrypted by the CA's passphrase, and verify it")
    .addHelpText(
      "after",
      "\nExamples:\n  kcore cluster backup prod.age\n\nage -d opens the file, too. Keep the file on another machine, and the passphrase somewhere else.",
    )
    .action(backup);
  withPassphrase(cluster.command("restore <file>"))
    .description("Put back a context from its backup; an existing context is not replaced")
    .addHelpText("after", "\nExamples:\n  kcore cluster restore prod.age")
    .action(restore);
  return cluster;
}

function withPassphrase(command: Command): Command {
  return addResultOption(command).option(...caPassphrase);
}

async function backup(file: string, { context, passphraseFile, output }: BackupFlags): Promise<void> {
  const { lock, unlock } = await import("#engine/encrypted-values/age.ts");
  const present = await loadContext(contextHome(), context);
  await requireNew(file);
  const { name } = present;
  const files = await withCaPassphrase(passphraseFile, async (passphrase) => {
    const gathered = await gatherContext(present, passphrase);
    const text = JSON.stringify(gathered);
    const write = async (): Promise<void> => {
      const locked = await lock(text, passphrase);
      await replaceFile(file, locked, { before: () => requireNew(file) }).catch((cause: unknown) => {
        throw writeError(file, cause);
      });
    };
    const verify = async (): Promise<void> => {
      if ((await unlock(await readFile(file), passphrase)) === text) return;
      await rm(file);
      throw new KcoreError({
        code: "BACKUP_DAMAGED",
        message: `${file} did not hold what was written to it, and was removed`,
        hint: "name a file on another disk",
      });
    };
    const steps = [
      { title: "encrypting and writing it", work: write },
      { title: "reading it back", work: verify },
    ];
    await shownTasks(output)([{ title: `backing up the cluster “${name}”`, steps }]);
    return Object.keys(gathered.files);
  });
  await noteBackup(present.folder);
  printResult(
    { file, context: name, files, verified: true },
    output,
    () =>
      `${file}: the cluster “${name}”, encrypted by the CA's passphrase and verified\nnext: copy it to another machine\n`,
  );
}

async function restore(file: string, { passphraseFile, output }: BackupFlags): Promise<void> {
  const bytes = await readFile(file).catch((cause: Error) => {
    throw new KcoreError({ code: "FILE_UNREADABLE", message: `${file} cannot be read: ${cause.message}` }, { cause });
  });
  const { unlock } = await import("#engine/encrypted-values/age.ts");
  const open = (passphrase: string): Promise<string> =>
    runTask(shownTasks(output), `opening ${file}`, async () => {
      const opened = await unlock(bytes, passphrase);
      if (opened !== undefined) return opened;
      throw new KcoreError({
        code: "PKI_PASSPHRASE_WRONG",
        message: `the passphrase does not open ${file}`,
        hint: "the passphrase is that of the CA's keys when the backup was made; if it is right, the file was changed",
      });
    });
  const text = isLocked(bytes) ? await withCaPassphrase(passphraseFile, open) : "";
  const found = parseBackup(text, file);
  const { folder, current } = await placeBackup(contextHome(), found, Date.now());
  const { context, controllers } = found;
  printResult(
    { context, folder, controllers },
    output,
    () => `restored the cluster “${context}” in ${folder}; ${describeCurrent(context, current)}\nnext: kcore health\n`,
  );
}
