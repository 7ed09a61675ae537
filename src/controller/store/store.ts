import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Low, type Adapter } from "lowdb";
import { KcoreError } from "#errors/problem.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { realDisk, type Disk } from "./durable-disk.ts";
import type { Journal, JournalRecord } from "../replica/replica-ports.ts";
import { JournalFile } from "./journal.ts";
import { holdFolder } from "./hold-folder.ts";
import { broken, isOfDisk, isPassing, reasonOf, unwritable } from "./store-problems.ts";
import { leftovers, recordsOf, recover, type Recovered } from "./recover.ts";
import { snapshotName, snapshotsAmong, writeSnapshot, type Snapshot } from "./snapshot-file.ts";

/** A controller's state on its disk: a journal of records, and now and then a snapshot that replaces the older ones. */
export interface DurableStore {
  /**
   * What was on the disk when it was opened: the records of the newest snapshot, then those of the journal since. A journal
   * record may be told although the snapshot has its effect. Can be read once. @throws KcoreError STORE_TOO_NEW as it is read
   */
  readonly recovered: Iterable<JournalRecord>;
  /** What was found amiss and mended when it was opened, for the log. */
  readonly notes: readonly string[];
  readonly append: Journal["append"];
  /** Why nothing can be written just now, if so. */
  readonly problem: () => KcoreError | undefined;
  /** Tells how to take the state: records that contain at least all that was on the disk when it is called. */
  readonly attach: (capture: () => Promise<Iterable<JournalRecord>>) => void;
  /** Writes a snapshot now, if anything was written since the last one. @throws KcoreError STORE_UNWRITABLE, STORE_BROKEN */
  readonly snapshot: () => Promise<void>;
  /** The state as one file, as `restoreStore` takes it; consistent, with all that is durable now. @throws as `snapshot` */
  readonly backup: () => Promise<Readable>;
  /** Writes what is under way and a last snapshot, and gives the folder free. */
  readonly close: () => Promise<void>;
}

export interface StoreOptions {
  /** Made 0700; its files are 0600. */
  readonly folder: string;
  /** Told once when the disk failed beyond healing: the process has to end at once. */
  readonly onBroken: (error: KcoreError) => void;
  /** Told of a snapshot that could not be written; the journal goes on. */
  readonly onNote?: (note: string) => void;
  readonly disk?: Disk;
  /** Milliseconds that only grow. */
  readonly monotonic?: () => number;
  readonly limits?: Partial<StoreLimits>;
}

/** When a new segment begins, and after how much of the journal a snapshot is written. */
export interface StoreLimits {
  readonly segmentBytes: number;
  readonly snapshotRecords: number;
  readonly snapshotBytes: number;
}

const usualLimits: StoreLimits = {
  segmentBytes: 8 * 1024 * 1024,
  snapshotRecords: 10_000,
  snapshotBytes: 8 * 1024 * 1024,
};
/** Snapshots take at most this share of the time, however fast records come. */
const snapshotShare = 0.1;
const generations = 2;

/**
 * Opens a controller's state and holds its folder alone.
 * @throws KcoreError STORE_LOCKED, STORE_CORRUPT, STORE_TOO_NEW, STORE_UNWRITABLE, FILE_UNTRUSTED
 */
export async function openStore(options: StoreOptions): Promise<DurableStore> {
  await ensurePrivateFolder(options.folder);
  const unlock = await holdFolder(options.folder);
  try {
    return await openHeld(options, unlock);
  } catch (error) {
    await unlock();
    throw error;
  }
}

/** As `openStore`, for a folder that is there and that we hold already; `unlock` is called when the store is closed. */
export async function openHeld(options: StoreOptions, unlock: () => Promise<void>): Promise<DurableStore> {
  const { folder, onBroken, onNote, disk = realDisk, monotonic = () => performance.now() } = options;
  const limits = { ...usualLimits, ...options.limits };
  const recovered = await readable(folder, recover(disk, folder));
  for (const file of await leftovers(disk, folder)) await disk.unlink(file);
  const { segments, end, next } = recovered;
  const { segmentBytes } = limits;
  const journal = await JournalFile.open({ folder, disk, segments, end, next, segmentBytes, onBroken }).catch(
    (error: unknown) => {
      throw isPassing(error) ? unwritable(folder, error) : broken(folder, error);
    },
  );
  const db = new Low<Snapshot>(snapshots(disk, folder), { index: 0, entries: [] });
  let capture: (() => Promise<Iterable<JournalRecord>>) | undefined;
  let kept = recovered.snapshot?.index ?? 0;
  let bytes = recovered.records.reduce((sum, record) => sum + record.length, 0);
  let restUntil = 0;
  let snapshotting: Promise<void> | undefined;

  const writeNow = async (): Promise<void> => {
    if (!capture || journal.durable <= kept) return;
    // Who waits for what is durable now makes its effect part of the state first.
    await nextTurn();
    const began = monotonic();
    const bytesBefore = bytes;
    // The index first: what becomes durable from now on may be in the state as well, and is told again after a crash.
    const index = journal.durable;
    const entries = await capture();
    try {
      db.data = { index, entries };
      await db.write();
      kept = index;
      bytes -= bytesBefore;
      await dropOlder(disk, folder, journal);
    } catch (error) {
      if (isPassing(error)) throw unwritable(folder, error);
      if (!isOfDisk(error)) throw error;
      const problem = broken(folder, error);
      onBroken(problem);
      throw problem;
    } finally {
      db.data = { index, entries: [] };
      restUntil = monotonic() + (monotonic() - began) / snapshotShare;
    }
  };
  const snapshot = (): Promise<void> =>
    (snapshotting ??= writeNow().finally(() => {
      snapshotting = undefined;
    }));
  const takeSnapshot = async (): Promise<void> => {
    await snapshotting?.catch(() => undefined);
    await snapshot();
  };
  const snapshotIfDue = (): void => {
    const isDue = journal.durable - kept >= limits.snapshotRecords || bytes >= limits.snapshotBytes;
    if (!isDue || !capture || snapshotting || monotonic() < restUntil) return;
    snapshot().catch((error: unknown) => onNote?.(`no snapshot: ${reasonOf(error)}`));
  };
  const { notes } = recovered;
  return {
    recovered: onceOf(recovered, folder),
    notes,
    problem: () => journal.problem,
    async append(records) {
      const texts = records.map((record) => JSON.stringify(record));
      await journal.append(texts);
      for (const text of texts) bytes += text.length;
      snapshotIfDue();
    },
    attach: (how) => {
      capture = how;
      snapshotIfDue();
    },
    snapshot: takeSnapshot,
    async backup() {
      await takeSnapshot();
      // Opened before anything else can happen: a later snapshot may remove the name, not what we hold.
      const handle = await open(join(folder, snapshotName(kept)));
      return handle.createReadStream();
    },
    async close() {
      await journal.idle();
      try {
        if (!journal.problem) await takeSnapshot();
      } finally {
        await journal.close();
        await unlock();
      }
    },
  };
}

/** What was recovered is told once, and let go of: it is as large as the state. */
function onceOf(recovered: Recovered, folder: string): Iterable<JournalRecord> {
  let held: Recovered | undefined = recovered;
  return {
    [Symbol.iterator]() {
      const now = held;
      held = undefined;
      return now ? recordsOf(now, folder) : [][Symbol.iterator]();
    },
  };
}

async function readable<Value>(folder: string, reading: Promise<Value>): Promise<Value> {
  try {
    return await reading;
  } catch (error) {
    if (!isOfDisk(error)) throw error;
    const message = `the controller's state in ${folder} cannot be read: ${reasonOf(error)}`;
    throw new KcoreError({ code: "FILE_UNREADABLE", message }, { cause: error });
  }
}

/** lowdb's way to the snapshots of a folder: writes the next. The newest is read with the journal, once (`recover`). */
function snapshots(disk: Disk, folder: string): Adapter<Snapshot> {
  return {
    read: () => Promise.resolve(null),
    async write(state) {
      await writeSnapshot(disk, join(folder, snapshotName(state.index)), state);
    },
  };
}

/** Keeps the newest snapshots and the journal from the oldest of them on, so that one damaged file costs nothing. */
async function dropOlder(disk: Disk, folder: string, journal: JournalFile): Promise<void> {
  const found = snapshotsAmong(await disk.list(folder));
  for (const { name } of found.slice(generations)) await disk.unlink(join(folder, name));
  const oldest = found.slice(0, generations).at(-1);
  if (oldest && found.length >= generations) await journal.dropUntil(oldest.index);
}
