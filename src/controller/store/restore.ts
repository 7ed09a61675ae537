import { randomBytes } from "node:crypto";
import { mkdir, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { createFile } from "#base/file.ts";
import { ensurePrivateFolder, syncFolder } from "#base/folder.ts";
import { ClusterState } from "../replica/cluster-state.ts";
import { newOriginGeneration } from "../replica/origin-generation.ts";
import { restamp, type RestampedWrite } from "../replica/restamp.ts";
import type { JournalRecord, KeyRules } from "../replica/replica-ports.ts";
import { realDisk } from "./durable-disk.ts";
import { holdFolder } from "./hold-folder.ts";
import type { LostWrite } from "./lost-writes.ts";
import { readableOf, recordsOf, recover, stagePrefixes } from "./recover.ts";
import { mergedAtOnce, salvage, type Salvaged } from "./salvage.ts";
import { segmentHead, segmentName } from "./segments.ts";
import { readSnapshot, snapshotName, writeSnapshot } from "./snapshot-file.ts";

export interface Replacement {
  /** The folder of the controller's state; its controller must not run. */
  readonly folder: string;
  /** The controller's id. The controller writes under a new origin, so no seq of a lost transaction is used again. */
  readonly id: string;
  /** Ms since 1970, for the name of the folder that keeps the former state. */
  readonly now: number;
  /** Whether no other controller is left to catch up with: this one serves at once. */
  readonly alone?: boolean;
  /** Checks the records of the new state; if it throws, nothing has changed. */
  readonly check?: (entries: readonly JournalRecord[]) => void;
}

export interface Replaced {
  /** The number of records of the new state. */
  readonly records: number;
  /** The folder of the former state, untouched; empty if there was none. */
  readonly aside: string;
  /** Notes about parts that could not be read. */
  readonly notes: readonly string[];
}

export interface Restored extends Replaced {
  /** The number of registers in the backup, without deleted ones. */
  readonly registers: number;
  /** The number of objects, nodes and controllers that these registers describe. */
  readonly contents: Readonly<Record<"objects" | "nodes" | "controllers", number>>;
}

export interface Repaired extends Replaced {
  /** The number of intact records behind a loss. */
  readonly behind: number;
  /** The number of records lost here, as far as it can be counted. */
  readonly lostRecords: number;
  /** The writes of the lost records, as far as they can be known. */
  readonly lost: readonly LostWrite[];
  /** The file that lists the lost writes; absent when nothing is lost. */
  readonly lostFile?: string;
}

/**
 * Replaces a controller's state by a backup of any controller of the cluster, and keeps the former state aside. Once it runs, the
 * controller fetches later changes from the others. `name`: the file as the operator named it, for messages.
 * @throws KcoreError STORE_LOCKED while the controller runs, BACKUP_DAMAGED, STORE_TOO_NEW, FILE_UNREADABLE, FILE_UNTRUSTED, and as `check`
 * does; then nothing has changed
 */
export async function restoreStore({
  file,
  name = file,
  ...where
}: Replacement & { readonly file: string; readonly name?: string }): Promise<Restored> {
  let registers: readonly string[] = [];
  const replaced = await replaceStore(where, "before-restore", async () => {
    try {
      const { index, entries } = await readSnapshot(realDisk, file);
      const records = [...readableOf(entries, file)];
      registers = registersIn(records);
      return { index, entries: records, notes: [] };
    } catch (error) {
      throw ofBackup(error, file, name);
    }
  });
  return { ...replaced, registers: registers.length, contents: countKinds(registers) };
}

/** The keys of the registers in records, without deleted ones. */
function registersIn(records: readonly JournalRecord[]): readonly string[] {
  const rows = records.flatMap((record) => ("page" in record ? record.page.registers : []));
  return [...new Set(rows.flatMap(([key, text]) => (text === null ? [] : [key])))];
}

function countKinds(registers: readonly string[]): Restored["contents"] {
  const count = (kind: string, parts: number): number => {
    const names = registers.filter((key) => key.startsWith(`${kind}/`)).map((key) => key.split("/", parts).join("/"));
    return new Set(names).size;
  };
  return { objects: count("object", 3), nodes: count("node", 2), controllers: count("controller", 2) };
}

/** An error of the backup with the operator's name for the file; the controller's state is unchanged. */
function ofBackup(error: unknown, file: string, name: string): KcoreError {
  const { message } = error as Error;
  if (!(error instanceof KcoreError))
    return new KcoreError({ code: "FILE_UNREADABLE", message: `${name} cannot be read: ${message}` }, { cause: error });
  const [problem] = error.problems;
  const text = message.replace(file, name);
  if (problem?.code !== "STORE_CORRUPT")
    return new KcoreError({ ...(problem as Problem), message: text }, { cause: error });
  return new KcoreError(
    {
      code: "BACKUP_DAMAGED",
      message: `the backup is damaged: ${text.slice(text.indexOf(name))}; the controller's state is as it was`,
      hint: "restore another backup; one is taken from a controller that runs: kcore controller backup -o FILE",
    },
    { cause: error },
  );
}

/**
 * Keeps every record of a damaged state whose checksum is valid, and puts all former files aside. The controller later fetches lost
 * records that others have; a file beside the former ones lists the losses.
 * @throws KcoreError STORE_LOCKED, STORE_TOO_NEW, FILE_UNTRUSTED, and as `check` does
 */
export async function repairStore(where: Replacement): Promise<Repaired> {
  let found: Salvaged | undefined;
  const replaced = await replaceStore(where, "damaged", async () => {
    const { index, entries, notes, lostRecords, lost } = (found = await salvage(realDisk, where.folder));
    return { index, entries, notes, ...(lostRecords > 0 && { beside: { "lost.json": { lostRecords, lost } } }) };
  });
  const { behind = 0, lostRecords = 0, lost = [] } = found ?? {};
  return {
    ...replaced,
    behind,
    lostRecords,
    lost,
    ...(lostRecords > 0 && { lostFile: join(replaced.aside, "lost.json") }),
  };
}

/**
 * Puts the former state aside: the controller begins with an empty one, and gets its state from the others.
 * @throws KcoreError STORE_LOCKED, FILE_UNTRUSTED
 */
export function emptyStore(where: Replacement): Promise<Replaced> {
  return replaceStore(where, "before-join", () => Promise.resolve({ index: 0, entries: [], notes: [] }));
}

/**
 * Makes the first state of a new cluster: without registers, but marked ready. Only a founder begins so; a controller with an empty
 * folder has lost its state, or has yet to join.
 * @throws KcoreError STORE_LOCKED, FILE_UNTRUSTED
 */
export function foundStore(where: Replacement): Promise<Replaced> {
  const content: NewState = { index: 0, entries: [{ t: "meta", format: 1, ready: true }], notes: [] };
  // `alone`: there is no other controller to catch up with.
  return replaceStore({ ...where, alone: true }, "before-founding", () => Promise.resolve(content));
}

export interface RestampedStore {
  readonly writes: readonly RestampedWrite[];
  /** The file that lists the writes; absent when there are none. */
  readonly file?: string;
}

/**
 * Stamps anew the writes of controllers whose clocks were ahead (restamp.ts), and lists them in a file beside the former state. It
 * changes nothing if there are no such writes.
 * @throws KcoreError STORE_CORRUPT, and as repairStore does
 */
export async function restampStore(where: Replacement & { readonly rules: KeyRules }): Promise<RestampedStore> {
  const { folder, id, now, rules } = where;
  const recovered = await recover(realDisk, folder);
  const state = new ClusterState(rules, recordsOf(recovered, folder));
  const { records, writes } = restamp(state, { id, now, word: randomWord });
  if (writes.length === 0) return { writes };
  const iso = (ms: number): string => new Date(ms).toISOString();
  const rows = writes.map((write) => ({ ...write, from: iso(write.from), to: iso(write.to) }));
  const beside = { "restamped.json": rows };
  const content = { index: recovered.next - 1, entries: [...records], notes: [], beside };
  const { aside } = await replaceStore(where, "before-restamping", () => Promise.resolve(content));
  return { writes, file: join(aside, "restamped.json") };
}

interface NewState {
  readonly index: number;
  readonly entries: readonly JournalRecord[];
  readonly notes: readonly string[];
  /** JSON files to write beside the former state, by name, such as its lost writes. */
  readonly beside?: Readonly<Record<string, unknown>>;
}

/** Replaces the state by a new content and keeps the former one aside; all or nothing, also after a crash. */
async function replaceStore(
  { folder, id, now, alone = false, check }: Replacement,
  reason: string,
  read: () => Promise<NewState>,
): Promise<Replaced> {
  await ensurePrivateFolder(folder);
  const unlock = await holdFolder(folder);
  try {
    await finishReplacing(folder);
    const { index, notes, beside = {}, ...content } = await read();
    const entries = alone ? content.entries.map(mergedAtOnce) : content.entries;
    // Salvaged records count for the check, although they are merged only after the controller has caught up.
    check?.(content.entries.map(mergedAtOnce));
    const wasEmpty = (await readdir(folder)).every((name) => !isOfState(name));
    const mark = randomBytes(4).toString("hex");
    const fresh = join(folder, `${stagePrefixes.restoring}${mark}`);
    const aside = join(folder, `${reason}-${new Date(now).toISOString().replaceAll(/[:.]/g, "-")}`);
    for (const path of [fresh, aside]) await mkdir(path, { mode: 0o700 });
    if (entries.length > 0) await writeContent(fresh, index, [...entries, newOriginGeneration(id, randomWord, alone)]);
    for (const [name, content] of Object.entries(beside))
      await createFile(join(aside, name), `${JSON.stringify(content, undefined, 2)}\n`);
    for (const path of [fresh, aside]) await syncFolder(path);
    // After this rename the replacement is certain: after a crash the next replacement finishes it, and no controller starts before.
    await rename(fresh, join(folder, `${stagePrefixes.replacing}${mark}`));
    await syncFolder(folder);
    await putStateAside(folder, mark, aside);
    await putInPlace(folder, mark);
    if (wasEmpty) await rm(aside, { recursive: true });
    await syncFolder(folder);
    return { records: entries.length, aside: wasEmpty ? "" : aside, notes };
  } finally {
    unlock();
  }
}

const isOfState = (name: string): boolean => /^(?:journal-|snapshot-|restoring-)/.test(name);

/** Moves the former state aside, so that its names are free for the new one. */
async function putStateAside(folder: string, mark: string, aside: string): Promise<void> {
  const names = (await readdir(folder)).filter(isOfState);
  for (const name of names) await rename(join(folder, name), join(aside, name));
  for (const path of [aside, folder]) await syncFolder(path);
  await rename(join(folder, `${stagePrefixes.replacing}${mark}`), join(folder, `${stagePrefixes.placing}${mark}`));
  await syncFolder(folder);
}

async function putInPlace(folder: string, mark: string): Promise<void> {
  const fresh = join(folder, `${stagePrefixes.placing}${mark}`);
  for (const name of await readdir(fresh)) await rename(join(fresh, name), join(folder, name));
  await syncFolder(folder);
  await rm(fresh, { recursive: true });
  await syncFolder(folder);
}

/** Finishes an interrupted replacement whose new state was complete. */
async function finishReplacing(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const [, stage, mark = ""] = /^(replacing|placing)-(.+)$/.exec(name) ?? [];
    if (stage === undefined) continue;
    if (stage === "replacing") {
      const aside = join(folder, `interrupted-${mark}`);
      await mkdir(aside, { recursive: true, mode: 0o700 });
      await putStateAside(folder, mark, aside);
    }
    await putInPlace(folder, mark);
  }
}

async function writeContent(folder: string, index: number, entries: readonly JournalRecord[]): Promise<void> {
  await createFile(join(folder, segmentName(index + 1)), segmentHead);
  await writeSnapshot(realDisk, join(folder, snapshotName(index)), { index, entries });
}

function randomWord(): string {
  return randomBytes(4).toString("hex");
}
