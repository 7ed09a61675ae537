import { join } from "node:path";
import type { KcoreError } from "#errors/problem.ts";
import type { StoreDisk, DiskFile } from "./durable-disk.ts";
import { encodeFrame } from "./journal-frames.ts";
import { broken, isPassing, storeUnwritable } from "./store-problems.ts";
import { segmentHead, segmentName, type JournalSegment } from "./segments.ts";

export interface JournalOptions {
  readonly folder: string;
  readonly disk: StoreDisk;
  /** The existing segments, oldest first. */
  readonly segments: readonly JournalSegment[];
  /** The length of the intact part of the last segment. */
  readonly end: number;
  /** Index of the next record. */
  readonly next: number;
  /** The size at which a new segment is begun. */
  readonly segmentBytes: number;
  /** Called once after an incurable failure of the disk: the process has to end. */
  readonly onBroken: (error: KcoreError) => void;
}

/** The size at which a group commit takes no more records, bytes: larger groups would only delay their writers. */
const largestGroup = 4 * 1024 * 1024;

/** Appends records to files so that they survive any crash; the order of the calls is the order on the disk. */
export class StateJournal {
  readonly #options: JournalOptions;
  readonly #segments: JournalSegment[];
  #file: DiskFile | undefined;
  #size: number;
  #next: number;
  /** Whether the present segment's name is not on the disk yet. */
  #isNameNew = false;
  #waiting: CommitGroup[] = [];
  #working: Promise<void> | undefined;
  #problem: KcoreError | undefined;
  #isBroken = false;

  private constructor(options: JournalOptions, file: DiskFile | undefined) {
    this.#options = options;
    this.#segments = [...options.segments];
    this.#file = file;
    this.#size = options.end;
    this.#next = options.next;
  }

  /** Opens the last segment for writing and truncates it to `end`. */
  static async open(options: JournalOptions): Promise<StateJournal> {
    const { folder, disk, segments, end } = options;
    const last = segments.at(-1);
    if (!last) return new StateJournal(options, undefined);
    const file = await disk.edit(join(folder, last.name), { isSynchronous: true });
    if ((await file.size()) > end) {
      await file.truncate(end);
      await file.sync();
    }
    return new StateJournal(options, file);
  }

  /** The index of the last record that is on the disk. */
  get durable(): number {
    return this.#next - 1;
  }

  /** The error of the last write; undefined once a write succeeds. */
  get problem(): KcoreError | undefined {
    return this.#problem;
  }

  get segments(): readonly JournalSegment[] {
    return this.#segments;
  }

  /**
   * Resolves when the records (JSON without line breaks) are on the disk; a crash keeps all of them or none. Records appended during
   * a write are written together after it. If a write fails, the records that wait behind it fail, too.
   * @throws KcoreError STORE_UNWRITABLE, then none of the records is kept; STORE_BROKEN
   */
  append(records: readonly string[]): Promise<void> {
    if (this.#isBroken) return Promise.reject(this.#problem as KcoreError);
    let group = this.#waiting.at(-1);
    if (!group || group.bytes >= largestGroup) {
      group = newGroup();
      this.#waiting.push(group);
    }
    for (const record of records) {
      group.records.push(record);
      group.bytes += record.length + 1;
    }
    this.#working ??= this.#work();
    return group.done;
  }

  /** Resolves when all appended records are written or have failed. */
  async idle(): Promise<void> {
    while (this.#working) await this.#working;
  }

  /** Removes the segments whose records all have an index of at most `index`; never the present one. */
  async dropUntil(index: number): Promise<void> {
    const { disk, folder } = this.#options;
    while (this.#segments.length > 1 && (this.#segments[1] as JournalSegment).first <= index + 1) {
      await disk.unlink(join(folder, (this.#segments[0] as JournalSegment).name));
      this.#segments.shift();
    }
  }

  async close(): Promise<void> {
    await this.idle();
    await this.#file?.close();
    this.#file = undefined;
    this.#isBroken = true;
    this.#problem ??= storeUnwritable(this.#options.folder, new Error("the store is closed"));
  }

  async #work(): Promise<void> {
    // Records that the same task appends belong to the first group, too.
    await Promise.resolve();
    for (let group = this.#waiting.shift(); group; group = this.#waiting.shift()) {
      try {
        await this.#write(group.records);
        this.#problem = undefined;
        group.resolve();
      } catch (error) {
        this.#problem = await this.#undo(error);
        for (const failed of [group, ...this.#waiting.splice(0)]) failed.reject(this.#problem);
      }
    }
    this.#working = undefined;
  }

  async #write(records: readonly string[]): Promise<void> {
    const file = await this.#fileForNext();
    const head = this.#size === 0 ? segmentHead : Buffer.alloc(0);
    const frame = encodeFrame(this.#next, records, this.#size + head.length);
    const bytes = head.length > 0 ? Buffer.concat([head, frame]) : frame;
    // Opened with O_DSYNC: the written bytes are on the disk.
    await file.write(bytes, this.#size);
    if (this.#isNameNew) {
      await this.#options.disk.syncFolder(this.#options.folder);
      this.#isNameNew = false;
    }
    this.#size += bytes.length;
    this.#next += records.length;
  }

  async #fileForNext(): Promise<DiskFile> {
    const { disk, folder, segmentBytes } = this.#options;
    const isEmpty = this.#segments.at(-1)?.first === this.#next;
    if (this.#file && (isEmpty || this.#size < segmentBytes)) return this.#file;
    const segment = { name: segmentName(this.#next), first: this.#next };
    const file = await disk.create(join(folder, segment.name), { isSynchronous: true });
    const before = this.#file;
    this.#file = file;
    this.#size = 0;
    this.#isNameNew = true;
    this.#segments.push(segment);
    await before?.close();
    return file;
  }

  /** Removes the remains of a failed write: a later start must not find them, nor a later write follow garbage. */
  async #undo(cause: unknown): Promise<KcoreError> {
    const { folder, onBroken } = this.#options;
    try {
      if (!isPassing(cause)) throw cause;
      if (this.#file && (await this.#file.size()) > this.#size) {
        await this.#file.truncate(this.#size);
        await this.#file.sync();
      }
      return storeUnwritable(folder, cause);
    } catch (error) {
      this.#isBroken = true;
      const problem = broken(folder, error);
      onBroken(problem);
      return problem;
    }
  }
}

interface CommitGroup {
  readonly records: string[];
  bytes: number;
  readonly done: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: KcoreError) => void;
}

function newGroup(): CommitGroup {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  // Each `append` returns this promise; a rejection that no caller handles must not end the process.
  promise.catch(() => undefined);
  return { records: [], bytes: 0, done: promise, resolve, reject };
}
