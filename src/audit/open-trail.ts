import { constants } from "node:fs";
import { mkdir, open, readdir, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { beginning, droppedType, lineHash, linkText, parseEntry, type EntryFields, type TrailHead } from "./chain.ts";
import { trailFileName, trailFilesAmong, type TrailFile } from "./trail-files.ts";

export interface TrailOptions {
  readonly folder: string;
  /** Milliseconds since 1970. */
  readonly clock: () => number;
  /** Called once when entries cannot be written, and once when they can again. */
  readonly onTrouble: (text: string) => void;
  /** The size above which a new file is begun, by default 2 MiB. */
  readonly segmentBytes?: number;
  /** The most files, by default 128; the oldest are removed. */
  readonly segments?: number;
}

const segmentBytes = 2 << 20;
const segments = 128;

/** The least bytes of entries that a trail keeps when it drops its oldest entries: then all its files but the new one are full. */
export const keptBytes = (segments - 1) * segmentBytes;

/** Most characters of entries that wait in memory for a failing disk. Further entries are only counted; an entry records the count later. */
const maxWaiting = 1 << 20;

/** A client stops reading a controller's trail after this many bytes; a genuine trail is shorter. */
export const mostBytes = 4 * segments * segmentBytes;

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Opens a trail: files of mode 0600 in a folder of mode 0700, never through a link (S-23). It removes a last line without a line
 * feed, which a crash left.
 * @throws NodeJS.ErrnoException when the folder or its last file cannot be used
 */
export async function openTrail(options: TrailOptions): Promise<SegmentedTrail> {
  const { folder } = options;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const last = trailFilesAmong(folder, await readdir(folder)).at(-1);
  if (!last) return new SegmentedTrail(options, beginning);
  const file = await open(last.path, O_RDWR | O_APPEND | O_NOFOLLOW);
  const bytes = await file.readFile();
  const size = bytes.lastIndexOf(10) + 1;
  if (size < bytes.length) await file.truncate(size);
  const lines = bytes.toString("utf8", 0, size).split("\n");
  lines.pop();
  const text = lines.at(-1);
  // The last line may be damaged: the next entry carries its hash, and the verifier reports the damage.
  const n = text === undefined ? last.first - 1 : (parseEntry(text)?.n ?? last.first + lines.length - 1);
  const hash = text === undefined ? await lastHashBefore(folder, last.first) : lineHash(text);
  return new SegmentedTrail(options, { n, hash }, { file, size });
}

/** The hash of the last line before entry `first`, which is in the file before. */
async function lastHashBefore(folder: string, first: number): Promise<string> {
  const { path } = trailFilesAmong(folder, await readdir(folder)).findLast((each) => each.first < first) ?? {};
  if (path === undefined) return beginning.hash;
  const file = await open(path, constants.O_RDONLY | O_NOFOLLOW);
  try {
    return lineHash((await file.readFile("utf8")).split("\n").at(-2) ?? "");
  } finally {
    await file.close();
  }
}

/** A trail that only one process writes. */
class SegmentedTrail {
  readonly #options: TrailOptions;
  readonly #segmentBytes: number;
  readonly #segments: number;
  readonly #waiting: { readonly at: number; readonly fields: string }[] = [];
  #waitingBytes = 0;
  #unrecorded = 0;
  #head: TrailHead;
  #file: FileHandle | undefined;
  #size: number;
  #writing: Promise<void> | undefined;
  #sync: NodeJS.Timeout | undefined;
  #isTroubled = false;

  constructor(options: TrailOptions, head: TrailHead, last?: { readonly file: FileHandle; readonly size: number }) {
    this.#options = options;
    this.#segmentBytes = options.segmentBytes ?? segmentBytes;
    this.#segments = options.segments ?? segments;
    this.#head = head;
    this.#file = last?.file;
    this.#size = last?.size ?? 0;
  }

  /** The last written entry; entries that still wait come after it. */
  head(): TrailHead {
    return this.#head;
  }

  /** Adds an entry behind all earlier ones. Entries of one turn of the event loop share a write, which is flushed within a second. */
  record(fields: EntryFields): void {
    const text = JSON.stringify(fields);
    if (this.#waitingBytes + text.length > maxWaiting) this.#unrecorded += 1;
    else {
      this.#waiting.push({ at: this.#options.clock(), fields: text });
      this.#waitingBytes += text.length;
    }
    this.#writing ??= this.#writeSoon();
  }

  /** Writes and flushes all recorded entries as far as the disk allows, and closes the file. */
  async close(): Promise<void> {
    await this.#writing;
    if (this.#waiting.length > 0) await this.#write();
    clearTimeout(this.#sync);
    await this.#file?.datasync().catch(() => undefined);
    await this.#file?.close();
    this.#file = undefined;
  }

  async #writeSoon(): Promise<void> {
    // Collects the entries of this turn of the event loop.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0 && (await this.#write()));
    this.#writing = undefined;
  }

  /** Writes all waiting entries or none; false if the disk failed. */
  async #write(): Promise<boolean> {
    const batch = this.#waiting.slice();
    const unrecorded = this.#unrecorded;
    let head = this.#head;
    let text = "";
    const addText = (at: number, fields: string): void => {
      const linked = linkText(head, at, fields);
      text += linked.line;
      ({ head } = linked);
    };
    const add = (at: number, fields: EntryFields): void => addText(at, JSON.stringify(fields));
    for (const { at, fields } of batch) addText(at, fields);
    if (unrecorded > 0) add(this.#options.clock(), { type: "audit.unrecorded", entries: unrecorded });
    let dropped;
    try {
      dropped = await this.#filesToDrop();
      if (dropped) add(this.#options.clock(), { type: droppedType, before: dropped.before, hash: dropped.hash });
      const file = await this.#fileFor();
      await this.#append(file, Buffer.from(text));
    } catch (error) {
      this.#trouble(`the audit trail cannot be written: ${(error as Error).message}`);
      return false;
    }
    this.#head = head;
    // The files are removed only after the entry that records the removal is written.
    for (const { path } of dropped?.files ?? []) await unlink(path).catch(() => undefined);
    this.#waiting.splice(0, batch.length);
    for (const { fields } of batch) this.#waitingBytes -= fields.length;
    this.#unrecorded -= unrecorded;
    this.#sync ??= setTimeout(() => this.#syncNow(), 1_000).unref();
    if (this.#isTroubled) this.#options.onTrouble("the audit trail is written again");
    this.#isTroubled = false;
    return true;
  }

  async #append(file: FileHandle, bytes: Buffer): Promise<void> {
    try {
      await file.writeFile(bytes);
      this.#size += bytes.length;
    } catch (error) {
      await file.truncate(this.#size).catch(() => undefined);
      throw error;
    }
  }

  async #fileFor(): Promise<FileHandle> {
    const present = this.#file;
    if (present && this.#size <= this.#segmentBytes) return present;
    const { folder } = this.#options;
    const path = join(folder, trailFileName(this.#head.n + 1));
    const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    this.#file = file;
    this.#size = 0;
    await present?.datasync();
    await present?.close();
    return file;
  }

  /** The files to remove, with the values for the entry that records it; undefined unless the next write begins a file beyond the limit. */
  async #filesToDrop(): Promise<
    { readonly files: readonly TrailFile[]; readonly before: number; readonly hash: string } | undefined
  > {
    if (this.#size <= this.#segmentBytes) return undefined;
    const { folder } = this.#options;
    const files = trailFilesAmong(folder, await readdir(folder));
    const [first] = files.slice(-(this.#segments - 1));
    const old = files.slice(0, -(this.#segments - 1));
    if (!first || old.length === 0) return undefined;
    return { files: old, before: first.first, hash: await lastHashBefore(folder, first.first) };
  }

  #syncNow(): void {
    this.#sync = undefined;
    this.#file
      ?.datasync()
      .catch((error: Error) => this.#trouble(`the audit trail is not on the disk: ${error.message}`));
  }

  #trouble(text: string): void {
    if (!this.#isTroubled) this.#options.onTrouble(text);
    this.#isTroubled = true;
  }
}
