import { constants } from "node:fs";
import { mkdir, open, readdir, unlink, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { beginning, droppedType, hashOf, linkText, parseEntry, type Fields, type Head } from "./chain.ts";
import { segmentName, segmentsAmong, type Segment } from "./trail-files.ts";

export interface TrailOptions {
  readonly folder: string;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** Told once when entries cannot be written, and once when they can again. */
  readonly onTrouble: (text: string) => void;
  /** Bytes from which on a new file is begun, and how many files are kept: the oldest go. */
  readonly segmentBytes?: number;
  readonly segments?: number;
}

const segmentBytes = 2 << 20;
const segments = 128;

/** Bytes of entries that a trail keeps at least when it drops its oldest: all files but the one that is begun then are full. */
export const keptBytes = (segments - 1) * segmentBytes;

/** Bytes that wait for a disk that cannot be written to; further entries are counted, and the count is an entry. */
const maxWaiting = 1 << 20;

/** No trail of a controller is longer, in bytes. A longer one is not read to its end. */
export const mostBytes = 4 * segments * segmentBytes;

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants;

/**
 * Opens a trail, 0600 in a folder 0700 and never through a link (S-23); an entry that a crash cut short is cut off.
 * @throws NodeJS.ErrnoException when the folder or its last file cannot be used
 */
export async function openTrail(options: TrailOptions): Promise<SegmentedTrail> {
  const { folder } = options;
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const last = segmentsAmong(folder, await readdir(folder)).at(-1);
  if (!last) return new SegmentedTrail(options, beginning);
  const file = await open(last.path, O_RDWR | O_APPEND | O_NOFOLLOW);
  const bytes = await file.readFile();
  const size = bytes.lastIndexOf(10) + 1;
  if (size < bytes.length) await file.truncate(size);
  const lines = bytes.toString("utf8", 0, size).split("\n");
  lines.pop();
  const text = lines.at(-1);
  // The verifier tells of a damaged line; the next entry names it as it is.
  const n = text === undefined ? last.first - 1 : (parseEntry(text)?.n ?? last.first + lines.length - 1);
  const before = text === undefined ? await lastHashBefore(folder, last.first) : hashOf(text);
  return new SegmentedTrail(options, { n, hash: before }, { file, size });
}

/** A file that was begun and has no entry yet follows the one before it. */
async function lastHashBefore(folder: string, first: number): Promise<string> {
  const { path } = segmentsAmong(folder, await readdir(folder)).findLast((each) => each.first < first) ?? {};
  if (path === undefined) return beginning.hash;
  const file = await open(path, constants.O_RDONLY | O_NOFOLLOW);
  try {
    return hashOf((await file.readFile("utf8")).split("\n").at(-2) ?? "");
  } finally {
    await file.close();
  }
}

/** A trail with a single writing process. */
class SegmentedTrail {
  readonly #options: TrailOptions;
  readonly #segmentBytes: number;
  readonly #segments: number;
  readonly #waiting: { readonly at: number; readonly fields: string }[] = [];
  #waitingBytes = 0;
  #unrecorded = 0;
  #head: Head;
  #file: FileHandle | undefined;
  #size: number;
  #writing: Promise<void> | undefined;
  #sync: NodeJS.Timeout | undefined;
  #isTroubled = false;

  constructor(options: TrailOptions, head: Head, last?: { readonly file: FileHandle; readonly size: number }) {
    this.#options = options;
    this.#segmentBytes = options.segmentBytes ?? segmentBytes;
    this.#segments = options.segments ?? segments;
    this.#head = head;
    this.#file = last?.file;
    this.#size = last?.size ?? 0;
  }

  /** The last entry that is written. */
  head(): Head {
    return this.#head;
  }

  /** Adds an entry, in the order of the calls; written with those that come in one go, on the disk a second later. */
  record(fields: Fields): void {
    const text = JSON.stringify(fields);
    if (this.#waitingBytes + text.length > maxWaiting) this.#unrecorded += 1;
    else {
      this.#waiting.push({ at: this.#options.clock(), fields: text });
      this.#waitingBytes += text.length;
    }
    this.#writing ??= this.#writeSoon();
  }

  /** Resolves when all that was recorded is on the disk. */
  async close(): Promise<void> {
    await this.#writing;
    if (this.#waiting.length > 0) await this.#write();
    clearTimeout(this.#sync);
    await this.#file?.datasync().catch(() => undefined);
    await this.#file?.close();
    this.#file = undefined;
  }

  async #writeSoon(): Promise<void> {
    // Entries of this turn of the loop share a write.
    await new Promise((resolve) => setImmediate(resolve));
    while (this.#waiting.length > 0 && (await this.#write()));
    this.#writing = undefined;
  }

  /** Writes the waiting entries, as a whole or not at all. */
  async #write(): Promise<boolean> {
    const taken = this.#waiting.slice();
    const unrecorded = this.#unrecorded;
    let head = this.#head;
    let text = "";
    const addText = (at: number, fields: string): void => {
      const linked = linkText(head, at, fields);
      text += linked.line;
      ({ head } = linked);
    };
    const add = (at: number, fields: Fields): void => addText(at, JSON.stringify(fields));
    for (const { at, fields } of taken) addText(at, fields);
    if (unrecorded > 0) add(this.#options.clock(), { type: "audit.unrecorded", entries: unrecorded });
    let dropped;
    try {
      dropped = await this.#oldest();
      if (dropped) add(this.#options.clock(), { type: droppedType, before: dropped.before, hash: dropped.hash });
      const file = await this.#fileFor();
      await this.#append(file, Buffer.from(text));
    } catch (error) {
      this.#trouble(`the audit trail cannot be written: ${(error as Error).message}`);
      return false;
    }
    this.#head = head;
    // Only now that the trail tells of it.
    for (const { path } of dropped?.files ?? []) await unlink(path).catch(() => undefined);
    this.#waiting.splice(0, taken.length);
    for (const { fields } of taken) this.#waitingBytes -= fields.length;
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
    const path = join(folder, segmentName(this.#head.n + 1));
    const file = await open(path, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
    this.#file = file;
    this.#size = 0;
    await present?.datasync();
    await present?.close();
    return file;
  }

  /** The files that are too many, when a new one is about to be begun. */
  async #oldest(): Promise<
    { readonly files: readonly Segment[]; readonly before: number; readonly hash: string } | undefined
  > {
    if (this.#size <= this.#segmentBytes) return undefined;
    const { folder } = this.#options;
    const files = segmentsAmong(folder, await readdir(folder));
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
