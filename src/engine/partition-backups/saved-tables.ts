import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { z } from "zod";
import { durableJson } from "#base/durable-file.ts";
import { ifThere } from "#base/file.ts";
import { replaceFolder, syncFolder } from "#base/folder.ts";
import { KcoreError } from "#errors/problem.ts";

const Hash = z.string().regex(/^[0-9a-f]{64}$/);

const SavedTable = z.strictObject({
  version: z.literal(1),
  /** A hash of the node's id and the device's name, size and pieces: equal saves have one id. */
  id: Hash,
  /** The node's id, or its name where it has none. */
  nodeId: z.string(),
  /** The device's name in the state: a serial, WWN, link in by-id or by-path, `VG/LV`, `md/ARRAY`. */
  name: z.string(),
  /** The disk's own ids, such as `serial S3Z8NB0K`; empty for a volume or an array. */
  ids: z.array(z.string()).readonly(),
  /** Bytes. */
  size: z.int().positive(),
  /** In the order of their offsets; they do not overlap. */
  pieces: z
    .array(z.strictObject({ offset: z.int().min(0), length: z.int().positive(), sha256: Hash }))
    .min(1)
    .readonly(),
  /** The output of the node's tools about the device, by tool. */
  texts: z.record(z.string(), z.string()).readonly(),
  /** Each save that found the device in this state, the oldest first. */
  occasions: z
    .array(
      z.strictObject({
        at: z.int(),
        node: z.string(),
        run: z.string(),
        /** The reason for the save: a wipe, or an earlier table that is put back. */
        before: z.enum(["wipe", "restore"]),
        /** The grants that allow the wipe or restore; an interrupted wipe continues by the same grant. */
        grants: z.array(z.string()).readonly().default([]),
      }),
    )
    .min(1)
    .readonly(),
});
type StoredSave = z.output<typeof SavedTable>;

/** The saved state of a disk, volume or array. */
export type SavedDevice = Pick<StoredSave, "name" | "ids" | "size" | "pieces" | "texts">;
/** The node, and the reason for a save. */
export type SaveOccasion = Pick<StoredSave, "nodeId"> & Omit<StoredSave["occasions"][number], "at">;

/** The saved state of a disk, volume or array, with the times of its saves. */
export type SavedTable = StoredSave & {
  /** The absolute path of the file of pieces: concatenated gzip members, one a piece. */
  readonly file: string;
};

export interface KeptTable {
  readonly id: string;
  /** Whether no equal, undamaged save existed before. */
  readonly isNew: boolean;
  /** Size of the compressed pieces, in bytes. */
  readonly bytes: number;
  /** Drops the occasion, since nothing was wiped or restored; a save without an occasion is removed. */
  readonly forget: () => Promise<void>;
}

/** A save that is being written on the bastion; it is discarded unless `keep` resolves. */
export interface TableSave {
  /** Appends the next piece, as a gzip member. */
  add(gzip: Uint8Array): Promise<void>;
  /** Completes the save after its last piece. Resolves when it is flushed to the bastion's disk. */
  keep(device: SavedDevice, occasion: SaveOccasion): Promise<KeptTable>;
  drop(): Promise<void>;
}

/** Stores the partition tables that a run is about to destroy (ADR 0012). */
export interface TableStore {
  open(): Promise<TableSave>;
}

/** Occasions that are kept of one save, besides the first and the newest. */
const maxOccasions = 100;

/** The folder of the partition tables that a project's runs saved: beside their records, and kept longer than these. */
export function tablesFolder(project: string): string {
  return join(project, ".kcore", "tables");
}

/**
 * Keeps saves below this folder (0700, files 0600): NODE-ID/NAME/SAVE-ID. Equal saves are kept once. The pieces are written to a temporary
 * file, and the save's folder is made as a whole, so that no save is ever incomplete.
 */
export function openTables(folder: string, now: () => number): TableStore {
  return { open: () => openSave(folder, now) };
}

async function openSave(folder: string, now: () => number): Promise<TableSave> {
  const aside = join(folder, `.${randomBytes(8).toString("hex")}.gz`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const pieces = await open(aside, "wx", 0o600);
  let bytes = 0;
  const drop = async (): Promise<void> => {
    await pieces.close();
    await rm(aside, { force: true });
  };
  const keep = async (device: SavedDevice, { nodeId, ...occasion }: SaveOccasion) => {
    const id = idOf(nodeId, device);
    const target = join(folder, folderNameOf(nodeId), folderNameOf(device.name), id);
    const newOccasion = { at: now(), ...occasion };
    const forget = () => forgetOccasion(target, newOccasion.at);
    const known = await readSave(target).catch(() => undefined);
    const [first, ...later] = known?.occasions ?? [];
    const occasions = first ? [first, ...later.slice(-maxOccasions), newOccasion] : [newOccasion];
    if (known && (await isWhole(known))) {
      await writeSave(target, { ...known, occasions });
      await drop();
      return { id, isNew: false, bytes, forget };
    }
    await pieces.sync();
    await pieces.close();
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    // A damaged save of this id is replaced.
    await replaceFolder(target, async (fresh) => {
      await rename(aside, join(fresh, "pieces.gz"));
      await writeSave(fresh, { version: 1, id, nodeId, ...device, occasions });
    });
    for (const above of [dirname(dirname(target)), folder]) await syncFolder(above);
    return { id, isNew: true, bytes, forget };
  };
  return {
    add: async (gzip) => {
      bytes += gzip.length;
      await pieces.writeFile(gzip);
    },
    keep,
    drop,
  };
}

async function forgetOccasion(folder: string, at: number): Promise<void> {
  const save = await readSave(folder);
  const occasions = save.occasions.filter((one) => one.at !== at);
  if (occasions.length > 0) return writeSave(folder, { ...save, occasions });
  await rm(folder, { recursive: true });
  await syncFolder(dirname(folder));
}

function idOf(nodeId: string, { name, size, pieces }: Pick<SavedDevice, "name" | "size" | "pieces">): string {
  const parts = pieces.map(({ offset, length, sha256 }) => [offset, length, sha256]);
  return createHash("sha256")
    .update(JSON.stringify([nodeId, name, size, parts]))
    .digest("hex");
}

/** Escapes a name, so that it is the name of one folder and no path. */
function folderNameOf(name: string): string {
  return encodeURIComponent(name).replace(/^\./, "%2E");
}

async function writeSave(folder: string, { ...save }: Omit<SavedTable, "file"> & { readonly file?: string }) {
  delete save.file;
  await durableJson(join(folder, "save.json"), SavedTable, save).write();
}

/** All saves of every node, in the order of their last occasions. @throws KcoreError DISK_SAVE_CORRUPT */
export async function listTables(folder: string): Promise<readonly SavedTable[]> {
  const saves: SavedTable[] = [];
  for (const node of await namesIn(folder))
    for (const name of await namesIn(join(folder, node)))
      for (const id of await namesIn(join(folder, node, name)))
        saves.push(await readSave(join(folder, node, name, id)));
  return saves.sort((a, b) => lastSavedAt(a) - lastSavedAt(b));
}

/** The time of a save's last occasion, in milliseconds since 1970. */
export function lastSavedAt({ occasions }: Pick<SavedTable, "occasions">): number {
  return occasions.at(-1)?.at ?? 0;
}

/** Compares all bytes of a save with their hashes. @throws KcoreError DISK_SAVE_CORRUPT */
export async function checkTable({ file, pieces }: SavedTable): Promise<void> {
  let [index, read, hash] = [0, 0, createHash("sha256")];
  const damaged = corrupt(file, "its bytes are not those that were saved");
  const take = (chunk: Buffer): void => {
    for (let rest = chunk; rest.length > 0;) {
      const piece = pieces[index];
      if (!piece) throw damaged;
      const part = rest.subarray(0, piece.length - read);
      hash.update(part);
      rest = rest.subarray(part.length);
      read += part.length;
      if (read < piece.length) continue;
      if (hash.digest("hex") !== piece.sha256) throw damaged;
      [index, read, hash] = [index + 1, 0, createHash("sha256")];
    }
  };
  try {
    await pipeline(createReadStream(file), createGunzip(), async (chunks) => {
      for await (const chunk of chunks) take(chunk as Buffer);
    });
  } catch (error) {
    throw error instanceof KcoreError ? error : corrupt(file, (error as Error).message, error);
  }
  if (index < pieces.length) throw damaged;
}

/** Whether all bytes of an earlier save are still right: the wipe depends on that save. */
async function isWhole(save: SavedTable): Promise<boolean> {
  return checkTable(save).then(
    () => true,
    () => false,
  );
}

async function namesIn(folder: string): Promise<readonly string[]> {
  const names = (await ifThere(readdir(folder))) ?? [];
  return names.filter((name) => !name.startsWith(".")).sort();
}

async function readSave(folder: string): Promise<SavedTable> {
  const path = join(folder, "save.json");
  let save: StoredSave;
  try {
    save = SavedTable.parse(JSON.parse(await readFile(path, "utf8")));
  } catch (error) {
    throw corrupt(path, "it is no description of a save", error);
  }
  if (idOf(save.nodeId, save) !== save.id || !folder.endsWith(save.id)) throw corrupt(path, "it was changed");
  return { ...save, file: join(folder, "pieces.gz") };
}

function corrupt(path: string, why: string, cause?: unknown): KcoreError {
  const hint = "move its folder away; another save of the disk may do: kcore disk restore-table NODE";
  return new KcoreError({ code: "DISK_SAVE_CORRUPT", message: `${path} is damaged: ${why}`, hint }, { cause });
}
