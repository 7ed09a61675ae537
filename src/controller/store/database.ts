import { open } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Low, type Adapter } from "lowdb";
import { KcoreError } from "#errors/problem.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { ClusterState } from "../replica/cluster-state.ts";
import type { JournalRecord, KeyRules } from "../replica/replica-ports.ts";
import type { Database } from "../replica/replica.ts";
import { realDisk, type StoreDisk } from "./durable-disk.ts";
import { holdFolder } from "./hold-folder.ts";
import { StateJournal } from "./journal.ts";
import { leftovers, recordsOf, recover } from "./recover.ts";
import { snapshotName, snapshotsAmong, writeSnapshot } from "./snapshot-file.ts";
import { broken, isOfDisk, isPassing, errorText, storeUnwritable } from "./store-problems.ts";

export interface DatabaseOptions {
  /** Created with mode 0700; its files have 0600. */
  readonly folder: string;
  readonly rules: KeyRules;
  /** Called once after an incurable failure of the disk: the process has to end at once. */
  readonly onBroken: (error: KcoreError) => void;
  /** Called when a snapshot failed; the journal continues. */
  readonly onNote?: (note: string) => void;
  readonly disk?: StoreDisk;
  /** Milliseconds that only grow. */
  readonly monotonic?: () => number;
  readonly limits?: Partial<DatabaseLimits>;
}

/** The size at which the journal begins a new segment, and the growth of the journal after which a snapshot is written. */
export interface DatabaseLimits {
  readonly segmentBytes: number;
  readonly snapshotRecords: number;
  readonly snapshotBytes: number;
}

const usualLimits: DatabaseLimits = {
  segmentBytes: 8 * 1024 * 1024,
  snapshotRecords: 10_000,
  snapshotBytes: 8 * 1024 * 1024,
};
/** Snapshots take at most this share of the time, however fast records come. */
const snapshotShare = 0.1;
/** The snapshots that are kept. */
const keptSnapshots = 2;

/** lowdb's adapter for a folder with a journal of records, and with snapshots, which replace older records (ADR 0507). */
class FolderAdapter implements Adapter<ClusterState> {
  /** Faults that `read` found and repaired, for the log. */
  notes: readonly string[] = [];
  readonly #options: DatabaseOptions;
  readonly #disk: StoreDisk;
  readonly #limits: DatabaseLimits;
  readonly #monotonic: () => number;
  #journal: StateJournal | undefined;
  /** Index of the newest snapshot. */
  #newest = 0;
  /** The approximate size of the journal since the newest snapshot. */
  #bytes = 0;
  /** The (monotonic) time before which no snapshot is due. */
  #restUntil = 0;
  #isClosing = false;

  constructor(options: DatabaseOptions) {
    this.#options = options;
    this.#disk = options.disk ?? realDisk;
    this.#limits = { ...usualLimits, ...options.limits };
    this.#monotonic = options.monotonic ?? (() => performance.now());
  }

  /** Recovers the state, and opens the journal for writing. @throws KcoreError as openDatabase does */
  async read(): Promise<ClusterState> {
    const { folder, onBroken, rules } = this.#options;
    const disk = this.#disk;
    const recovered = await recover(disk, folder).catch((error: unknown) => {
      if (!isOfDisk(error)) throw error;
      const message = `the controller's state in ${folder} cannot be read: ${errorText(error)}`;
      throw new KcoreError({ code: "FILE_UNREADABLE", message }, { cause: error });
    });
    const state = new ClusterState(rules, recordsOf(recovered, folder));
    for (const file of await leftovers(disk, folder)) await disk.unlink(file);
    const { segments, end, next, records, snapshot, notes } = recovered;
    const { segmentBytes } = this.#limits;
    this.#journal = await StateJournal.open({ folder, disk, segments, end, next, segmentBytes, onBroken }).catch(
      (error: unknown) => {
        throw isPassing(error) ? storeUnwritable(folder, error) : broken(folder, error);
      },
    );
    this.#newest = snapshot?.index ?? 0;
    this.#bytes = records.reduce((sum, record) => sum + record.length, 0);
    this.notes = notes;
    return state;
  }

  get journal(): StateJournal {
    return this.#journal as StateJournal;
  }

  /** The file of the newest snapshot. */
  get newest(): string {
    return join(this.#options.folder, snapshotName(this.#newest));
  }

  async append(records: readonly JournalRecord[]): Promise<void> {
    const texts = records.map((record) => JSON.stringify(record));
    await this.journal.append(texts);
    for (const text of texts) this.#bytes += text.length;
  }

  get isSnapshotDue(): boolean {
    const { snapshotRecords, snapshotBytes } = this.#limits;
    const isJournalLong = this.journal.durable - this.#newest >= snapshotRecords || this.#bytes >= snapshotBytes;
    return isJournalLong && this.#monotonic() >= this.#restUntil;
  }

  /** Writes a snapshot if records were appended since the newest one. @throws KcoreError STORE_UNWRITABLE, STORE_BROKEN */
  async write(state: ClusterState): Promise<void> {
    if (this.journal.durable <= this.#newest) return;
    const { folder, onBroken } = this.#options;
    this.#restUntil = Infinity;
    const began = this.#monotonic();
    try {
      // The snapshot replaces all durable records, so the state must hold them. The replica applies each before the next turn of the event
      // loop. Behind a large merge the replica applies them after the merge, which a stopped replica does not end.
      do await nextTurn();
      while (state.isMerging && !this.#isClosing);
      if (state.isMerging) return;
      const bytes = this.#bytes;
      // The index is read before the state: the state may include later records, which a recovery may apply twice without harm.
      const index = this.journal.durable;
      await writeSnapshot(this.#disk, join(folder, snapshotName(index)), { index, entries: state.snapshot() });
      this.#newest = index;
      this.#bytes -= bytes;
      await this.#dropOlder();
    } catch (error) {
      if (isPassing(error)) throw storeUnwritable(folder, error);
      if (!isOfDisk(error)) throw error;
      const problem = broken(folder, error);
      onBroken(problem);
      throw problem;
    } finally {
      this.#restUntil = this.#monotonic() + (this.#monotonic() - began) / snapshotShare;
    }
  }

  /** Ends the waiting for a merge, which a stopped replica does not finish: the journal holds its records. */
  beginClose(): void {
    this.#isClosing = true;
  }

  /** Keeps the two newest snapshots and the journal since the older one, so a damaged snapshot loses nothing. */
  async #dropOlder(): Promise<void> {
    const { folder } = this.#options;
    const found = snapshotsAmong(await this.#disk.list(folder));
    for (const { name } of found.slice(keptSnapshots)) await this.#disk.unlink(join(folder, name));
    const oldest = found.slice(0, keptSnapshots).at(-1);
    if (oldest && found.length >= keptSnapshots) await this.journal.dropUntil(oldest.index);
  }
}

/**
 * A controller's state as a lowdb database. `read` recovers it from the disk; the replica serves `data` and merges into it. `append`
 * makes a transaction durable before it is acknowledged; `write` makes a snapshot.
 */
export class ControllerDatabase extends Low<ClusterState> implements Database {
  readonly #adapter: FolderAdapter;
  readonly #onNote: (note: string) => void;
  readonly #unlock: () => void;
  #writing = Promise.resolve();

  /** `unlock` releases the folder's lock. */
  constructor(options: DatabaseOptions, unlock: () => void = () => undefined) {
    const adapter = new FolderAdapter(options);
    super(adapter, new ClusterState(options.rules));
    this.#adapter = adapter;
    this.#unlock = unlock;
    this.#onNote = options.onNote ?? (() => undefined);
  }

  /** Faults that `read` found and repaired, for the log. */
  get notes(): readonly string[] {
    return this.#adapter.notes;
  }

  /** The error of the journal's last write; undefined once a write succeeds. */
  get problem(): KcoreError | undefined {
    return this.#adapter.journal.problem;
  }

  /** Makes records durable, as the contract of `Database` says. @throws KcoreError STORE_UNWRITABLE, then no record is kept; STORE_BROKEN */
  async append(records: readonly JournalRecord[]): Promise<void> {
    await this.#adapter.append(records);
    if (this.#adapter.isSnapshotDue)
      this.write().catch((error: unknown) => this.#onNote(`no snapshot: ${errorText(error)}`));
  }

  /** Writes a snapshot, one at a time. @throws as the adapter */
  override write(): Promise<void> {
    const writing = this.#writing.then(() => super.write());
    this.#writing = writing.catch(() => undefined);
    return writing;
  }

  /** A consistent snapshot with all that is durable now, in the format that `restoreStore` reads. @throws as `write` */
  async backup(): Promise<Readable> {
    await this.write();
    // Opened at once: a later snapshot removes the name, but the open file keeps the content.
    const handle = await open(this.#adapter.newest);
    return handle.createReadStream();
  }

  /** Waits for records under way, writes a last snapshot, and releases the folder. */
  async close(): Promise<void> {
    const { journal } = this.#adapter;
    this.#adapter.beginClose();
    await journal.idle();
    try {
      if (!journal.problem) await this.write();
    } finally {
      await journal.close();
      this.#unlock();
    }
  }
}

/**
 * Opens a controller's state; this process alone uses its folder until `close`.
 * @throws KcoreError STORE_LOCKED, STORE_CORRUPT, STORE_TOO_NEW, STORE_UNWRITABLE, STORE_BROKEN, FILE_UNREADABLE, FILE_UNTRUSTED
 */
export async function openDatabase(options: DatabaseOptions): Promise<ControllerDatabase> {
  await ensurePrivateFolder(options.folder);
  const unlock = await holdFolder(options.folder);
  const db = new ControllerDatabase(options, unlock);
  try {
    await db.read();
    return db;
  } catch (error) {
    unlock();
    throw error;
  }
}
