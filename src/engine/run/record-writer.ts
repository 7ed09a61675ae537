import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { formatEvent, parseRecording } from "#engine/events/recording.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import type { RunFolder } from "./run-folder.ts";

/** Bytes kept free for the end of the record. */
export const RESERVE_BYTES = 65_536;

/** Events after which the record is flushed to the disk, so that a crash of the machine loses hardly more than output. */
const syncedTypes: ReadonlySet<RunEventBody["type"]> = new Set([
  "run.started",
  "run.finished",
  "stage.finished",
  "step.finished",
  "action.finished",
  "node.finished",
]);

export interface RecordOptions {
  readonly folder: RunFolder;
  readonly now: () => number;
  /** Called when these bytes, which are whole lines, are in the record from offset `at` on. */
  readonly onWritten: (bytes: Buffer, at: number) => void;
  /** Called for an error of the file system: some events of that write are missing in the record. */
  readonly onError: (error: unknown) => void;
}

/**
 * Appends events to a run's record; every line is whole or not there. Events of one synchronous piece of code are written by one call, in a
 * microtask after it: no view and no node acts on an event that is not in the record.
 */
export class RecordWriter {
  /** Events of an earlier part of the run. */
  readonly earlier: readonly RunEvent[];
  /** Bytes of whole lines, which views may read. */
  size: number;
  readonly #fd: number;
  readonly #options: RecordOptions;
  readonly #waiting: string[] = [];
  #mustSync = false;
  #seq: number;
  #syncing: "no" | "running" | "again" = "no";

  /** Opens the record and cuts off a line that a crash tore. @throws KcoreError RUN_RECORD_CORRUPT */
  constructor(options: RecordOptions) {
    const { folder } = options;
    this.#options = options;
    this.#fd = openSync(folder.events, "a+", 0o600);
    const { events, length } = parseRecording(readFileSync(this.#fd), folder.events);
    if (fstatSync(this.#fd).size !== length) ftruncateSync(this.#fd, length);
    this.earlier = events;
    this.size = length;
    this.#seq = events.at(-1)?.seq ?? 0;
    writeFileSync(folder.reserve, Buffer.alloc(RESERVE_BYTES), { mode: 0o600 });
  }

  /** Numbers and dates an event, and returns the date; the next microtask writes it, with those that came meanwhile. */
  append(body: RunEventBody): number {
    this.#seq += 1;
    const at = this.#options.now();
    this.#waiting.push(formatEvent({ seq: this.#seq, at, ...body }));
    this.#mustSync ||= syncedTypes.has(body.type);
    if (this.#waiting.length === 1) queueMicrotask(() => this.flush());
    return at;
  }

  flush(): void {
    if (this.#waiting.length === 0) return;
    const bytes = Buffer.from(this.#waiting.splice(0).join(""));
    const at = this.size;
    let done = 0;
    try {
      while (done < bytes.length) done += writeSync(this.#fd, bytes, done);
      this.size += bytes.length;
    } catch (error) {
      this.#keepWhole(bytes, done);
      this.#options.onError(error);
    }
    if (this.size > at) this.#options.onWritten(bytes.subarray(0, this.size - at), at);
    if (this.#mustSync) this.#sync();
    this.#mustSync = false;
  }

  /** After a partial write keeps only the whole lines; the numbers of the lost events are used again. */
  #keepWhole(bytes: Buffer, done: number): void {
    const kept = done === 0 ? 0 : bytes.lastIndexOf(10, done - 1) + 1;
    this.size += kept;
    for (let end = bytes.indexOf(10, kept); end >= 0; end = bytes.indexOf(10, end + 1)) this.#seq -= 1;
    if (done === 0) return;
    try {
      ftruncateSync(this.#fd, this.size);
    } catch {
      // The file system may have turned read-only: the next RecordWriter cuts off the torn line.
    }
  }

  /** Removes the reserve, to make room for the last events of a run whose disk is full. */
  releaseReserve(): void {
    try {
      unlinkSync(this.#options.folder.reserve);
    } catch {
      // Removed already.
    }
  }

  close(): void {
    try {
      this.flush();
      fdatasyncSync(this.#fd);
    } finally {
      closeSync(this.#fd);
      this.releaseReserve();
    }
  }

  #sync(): void {
    if (this.#syncing !== "no") {
      this.#syncing = "again";
      return;
    }
    this.#syncing = "running";
    fdatasync(this.#fd, () => {
      const again = this.#syncing === "again";
      this.#syncing = "no";
      if (again) this.#sync();
    });
  }
}
