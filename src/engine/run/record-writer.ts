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
const RESERVE = 65_536;

/** These are on the disk before long: a crash of the machine loses no more than output. */
const syncedTypes: ReadonlySet<RunEventBody["type"]> = new Set([
  "run.started",
  "run.finished",
  "stage.finished",
  "step.finished",
  "action.finished",
  "node.finished",
]);

/** Appends events to a run's record; every line is whole or not there. */
export class RecordWriter {
  /** Events of an earlier part of the run. */
  readonly earlier: readonly RunEvent[];
  /** Bytes of whole lines; what followers may read. */
  size: number;
  readonly #fd: number;
  readonly #folder: RunFolder;
  readonly #now: () => number;
  #seq: number;
  #syncing: "no" | "running" | "again" = "no";

  /** Opens the record and cuts off a line that a crash tore. @throws KcoreError RUN_RECORD_CORRUPT */
  constructor(folder: RunFolder, now: () => number) {
    this.#folder = folder;
    this.#now = now;
    this.#fd = openSync(folder.events, "a+", 0o600);
    const { events, length } = parseRecording(readFileSync(this.#fd), folder.events);
    if (fstatSync(this.#fd).size !== length) ftruncateSync(this.#fd, length);
    this.earlier = events;
    this.size = length;
    this.#seq = events.at(-1)?.seq ?? 0;
    writeFileSync(folder.reserve, Buffer.alloc(RESERVE), { mode: 0o600 });
  }

  /** Numbers, dates and writes one event. Throws what the file system says; then nothing of it is in the record. */
  append(body: RunEventBody): void {
    const event = { seq: this.#seq + 1, at: this.#now(), ...body };
    const bytes = Buffer.from(formatEvent(event));
    try {
      for (let done = 0; done < bytes.length;) done += writeSync(this.#fd, bytes, done);
    } catch (error) {
      ftruncateSync(this.#fd, this.size);
      throw error;
    }
    this.#seq += 1;
    this.size += bytes.length;
    if (syncedTypes.has(body.type)) this.#sync();
  }

  /** Gives the kept room back, for the last events of a run whose disk is full. */
  releaseReserve(): void {
    try {
      unlinkSync(this.#folder.reserve);
    } catch {
      // Given back already.
    }
  }

  close(): void {
    try {
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
