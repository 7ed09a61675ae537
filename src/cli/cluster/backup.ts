import { statSync } from "node:fs";
import { readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { areAway, wasFounded } from "#actions/cluster-context.ts";
import { createFile, replaceFile } from "#base/file.ts";
import { reportingBytes, runTask, type RunTasks, type SayProgress } from "#base/tasks.ts";
import { KcoreError, usageError } from "#errors/problem.ts";
import { gatherContext, noteBackup, openKeys, placeBackup } from "#pki/context-backup.ts";
import { loadContext, type Context } from "#pki/contexts.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { contextHome } from "../process/kcore-home.ts";
import { requireNew, writeError } from "../project/write-asked.ts";
import { printResult } from "../terminal/format-result.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { openArchive, passphraseCipher, recipientsCipher, type ArchiveCipher, type ArchiveKeys } from "./archive.ts";
import { withCaPassphrase } from "./ca-passphrase.ts";
import { describeCurrent } from "./new-cluster.ts";
import { openCluster } from "./open-cluster.ts";

export interface BackupRequest extends ClusterFlags {
  readonly passphraseFile?: string;
  /** Age recipients; none: the CA's passphrase encrypts the archive. */
  readonly recipient?: readonly string[];
  /** The number of archives that stay in the folder. */
  readonly keep?: number;
  /** Whether the controllers' state is left out. */
  readonly keysOnly?: boolean;
  readonly output: ResultFormat;
}

/** `kcore cluster backup FILE|FOLDER`: the context and the controllers' state in one archive, which is read back at once. */
export async function backUpCluster(target: string, request: BackupRequest): Promise<void> {
  const { recipient = [], passphraseFile, keep, output } = request;
  const present = await loadContext(contextHome(), request.context);
  const { name } = present;
  const isFolder = statSync(target, { throwIfNoEntry: false })?.isDirectory() === true;
  if (keep !== undefined && (!isFolder || keep === 0))
    throw usageError("--keep takes a number above 0, and a folder instead of a file", "kcore cluster backup FOLDER");
  const at = new Date();
  const fileOf = (kind: ArchiveKind): string => (isFolder ? join(target, archiveName(name, at, kind)) : target);
  const hasState = request.keysOnly !== true && present.controllers.length > 0;
  await requireNew(fileOf(hasState ? "whole" : "keys"));
  const tasks = shownTasks(output);
  const write = async (cipher: ArchiveCipher) => {
    const context = await gatherContext(present);
    const state = hasState ? await copyState(request, present, tasks) : undefined;
    const text = JSON.stringify({ ...context, ...(state && { state: state.bytes.toString("base64") }) });
    const kind: ArchiveKind = state ? "whole" : "keys";
    await writeArchive(fileOf(kind), text, cipher, tasks);
    return { kind, files: Object.keys(context.files), ...(state && { registers: state.registers }) };
  };
  const { kind, ...written } =
    recipient.length > 0
      ? await write(await recipientsCipher(recipient))
      : await withCaPassphrase(passphraseFile, async (passphrase) => {
          await openKeys(present.folder, passphrase);
          return write(await passphraseCipher(passphrase));
        });
  await noteBackup(present.folder);
  const file = fileOf(kind);
  const removed = keep === undefined ? [] : await removeOlder(target, archivePattern(name, kind), keep);
  const by = recipient.length > 0 ? `to ${recipient.join(", ")}` : "by the CA's passphrase";
  const whole = written.registers === undefined ? "keys" : `keys and ${written.registers} registers of the state`;
  const gone = removed.length === 0 ? "" : `removed ${removed.join(", ")}\n`;
  const text = `${file}: the cluster “${name}” (${whole}), encrypted ${by} and verified\n${gone}next: copy it to another machine\n`;
  printResult({ file, context: name, ...written, verified: true, removed }, output, () => text);
}

/** The kind of an archive: with the controllers' state or without. The names differ, so that `--keep` removes no whole archive for one of keys. */
type ArchiveKind = "whole" | "keys";
const endings = { whole: ".age", keys: ".keys.age" };

/** The name of an archive in a folder of backups: `lab-20261130-221500.age`, of the keys alone `lab-20261130-221500.keys.age`. */
function archiveName(cluster: string, at: Date, kind: ArchiveKind): string {
  return `${cluster}-${at.toISOString().slice(0, 19).replaceAll(/[-:]/g, "").replace("T", "-")}${endings[kind]}`;
}

function archivePattern(cluster: string, kind: ArchiveKind): RegExp {
  return new RegExp(`^${cluster}-\\d{8}-\\d{6}${endings[kind].replaceAll(".", "\\.")}$`);
}

/** Removes all but the newest of the files that fit from a folder; other files stay. Returns the names of the removed ones. */
async function removeOlder(folder: string, own: RegExp, keep: number): Promise<readonly string[]> {
  const older = (await readdir(folder))
    .filter((name) => own.test(name))
    .toSorted()
    .slice(0, -keep);
  for (const name of older) await rm(join(folder, name));
  return older;
}

/**
 * The state of a controller, after a check of its checksum; undefined before the cluster was founded, if no controller answers. If a
 * controller is lost midway, the next one is asked from the start.
 */
async function copyState(flags: ClusterFlags, present: Context, tasks: RunTasks) {
  const { ask, context } = await openCluster(flags);
  const copy = (say: SayProgress): Promise<Buffer> =>
    ask(async (client) => buffer(reportingBytes(await client.open("backup", {}), say)));
  try {
    const bytes = await runTask(tasks, `copying the state of the cluster “${context}”`, copy);
    const { readContents } = await import("#controller/backup-contents.ts");
    return { bytes, registers: (await readContents(bytes, "the controller's answer")).size };
  } catch (error) {
    if (!areAway(error) || (await wasFounded(present))) throw error;
    return undefined;
  }
}

/** Writes an archive and reads it back. @throws KcoreError BACKUP_DAMAGED, USAGE, FILE_IN_THE_WAY */
async function writeArchive(
  file: string,
  text: string,
  { encrypt, decrypt }: ArchiveCipher,
  tasks: RunTasks,
): Promise<void> {
  await runTask(tasks, `encrypting and writing ${file}`, async () =>
    replaceFile(file, await encrypt(text), { before: () => requireNew(file) }).catch((cause: unknown) => {
      throw writeError(file, cause);
    }),
  );
  if ((await runTask(tasks, "reading it back", async () => decrypt(await readFile(file)))) === text) return;
  await rm(file);
  throw new KcoreError({
    code: "BACKUP_DAMAGED",
    message: `${file} did not hold what was written to it, and was removed`,
    hint: "name a file on another disk",
  });
}

export interface RestoreRequest extends ArchiveKeys {
  /** The file for the controllers' state, which is then all that is restored. */
  readonly state?: string;
  readonly output: ResultFormat;
}

/** `kcore cluster restore FILE`: puts the context back, or writes the controllers' state for `kcore controller restore`. */
export async function restoreCluster(file: string, { state: out, output, ...keys }: RestoreRequest): Promise<void> {
  if (out !== undefined) await requireNew(out);
  const { backup } = await openArchive(file, keys, shownTasks(output));
  const { context, controllers, state } = backup;
  if (out === undefined) {
    const { folder, current } = await placeBackup(contextHome(), backup, Date.now());
    const more = state === undefined ? "" : `the controllers' state: kcore cluster restore ${file} --state OUT\n`;
    const draw = (): string =>
      `restored the cluster “${context}” in ${folder}; ${describeCurrent(context, current)}\n${more}next: kcore health\n`;
    return printResult({ context, folder, controllers, hasState: state !== undefined }, output, draw);
  }
  if (state === undefined)
    throw new KcoreError({
      code: "BACKUP_DAMAGED",
      message: `${file} holds the keys of “${context}” alone, and no state of its controllers`,
      hint: "name a backup that kcore cluster backup made while a controller answered",
    });
  const bytes = Buffer.from(state, "base64");
  await createFile(out, bytes).catch((cause: unknown) => {
    throw writeError(out, cause);
  });
  const { readContents } = await import("#controller/backup-contents.ts");
  const registers = (await readContents(bytes, out)).size;
  const next = `next, on a stopped controller: kcore controller restore ${out} --alone --cluster ${context}`;
  printResult(
    { context, state: out, registers },
    output,
    () => `${out}: ${registers} registers of the cluster “${context}”, for you alone\n${next}\n`,
  );
}
