import { createHash, randomBytes } from "node:crypto";
import { setImmediate as nextTurn } from "node:timers/promises";
import { basename, dirname } from "node:path";
import { z } from "zod";
import type { StoreDisk } from "./durable-disk.ts";
import { storeCorrupt, tooNew } from "./store-problems.ts";

/**
 * The state as one file: a head of fixed width, then lines, each a JSON array of entries. The head, with the checksum, is written
 * last, so that the whole text is never in memory at once.
 */
export interface Snapshot {
  /** Index of the last journal record that the snapshot certainly includes; it may include later ones. */
  readonly index: number;
  /** Plain JSON; yielded entries must not change in place afterwards. */
  readonly entries: Iterable<unknown>;
}

const family = "kcore-store/";
const format = `${family}2`;
const headBytes = 256;
/** The size of a line, after which the event loop gets a turn: about 2 ms of work. */
const chunkChars = 128 * 1024;

const SnapshotHead = z.object({
  format: z.literal(format),
  index: z.int().min(0),
  entries: z.int().min(0),
  bytes: z.int().min(0),
  sha256: z.string(),
});
type SnapshotHead = z.infer<typeof SnapshotHead>;

export function snapshotName(index: number): string {
  return `snapshot-${String(index).padStart(16, "0")}.json`;
}

/** The snapshots among file names, newest first. */
export function snapshotsAmong(names: readonly string[]): readonly { readonly name: string; readonly index: number }[] {
  return names
    .map((name) => ({ name, index: Number(/^snapshot-(\d{16})\.json$/.exec(name)?.[1] ?? Number.NaN) }))
    .filter(({ index }) => !Number.isNaN(index))
    .toSorted((a, b) => b.index - a.index);
}

/** Whether the name is of a snapshot that was never finished. */
export function isUnfinishedSnapshot(name: string): boolean {
  return /^snapshot-\d{16}\.json\.[0-9a-f]{16}\.tmp$/.test(name);
}

/**
 * Writes a snapshot to `path`: under a random name first, then flushed, renamed, and the folder flushed. So after any crash
 * `path` is a complete snapshot or missing. The event loop gets a turn between lines.
 */
export async function writeSnapshot(disk: StoreDisk, path: string, snapshot: Snapshot): Promise<void> {
  const aside = `${path}.${randomBytes(8).toString("hex")}.tmp`;
  const file = await disk.create(aside);
  try {
    const hash = createHash("sha256");
    let at = headBytes;
    let entries = 0;
    try {
      for (const { text, count } of chunksOf(snapshot.entries)) {
        entries += count;
        const bytes = Buffer.from(text, "utf8");
        hash.update(bytes);
        await file.write(bytes, at);
        at += bytes.length;
        await nextTurn();
      }
      const bytes = at - headBytes;
      const head: SnapshotHead = { format, index: snapshot.index, entries, bytes, sha256: hash.digest("hex") };
      await file.write(Buffer.from(`${JSON.stringify(head).padEnd(headBytes - 1)}\n`, "latin1"), 0);
      await file.sync();
    } finally {
      await file.close();
    }
    await disk.rename(aside, path);
    await disk.syncFolder(dirname(path));
  } catch (error) {
    await disk.unlink(aside).catch(() => undefined);
    throw error;
  }
}

/** Reads and verifies a snapshot; its entries are parsed while they are iterated, which may throw STORE_CORRUPT. @throws KcoreError STORE_CORRUPT, STORE_TOO_NEW */
export async function readSnapshot(disk: StoreDisk, path: string): Promise<Snapshot> {
  const bytes = await disk.read(path);
  const head = headOf(bytes, path);
  const body = bytes.subarray(headBytes);
  if (body.length !== head.bytes) throw storeCorrupt(path, `it has ${body.length} bytes where ${head.bytes} belong`);
  if (createHash("sha256").update(body).digest("hex") !== head.sha256) {
    throw storeCorrupt(path, "its checksum does not match");
  }
  const named = snapshotsAmong([basename(path)])[0];
  if (named && named.index !== head.index)
    throw storeCorrupt(path, `it is the snapshot ${head.index} under another's name`);
  return { index: head.index, entries: entriesOf(body, head, path) };
}

function headOf(bytes: Buffer, path: string): SnapshotHead {
  let head: unknown;
  try {
    head = JSON.parse(bytes.toString("latin1", 0, headBytes)) as unknown;
  } catch (error) {
    throw storeCorrupt(path, "it does not begin as a snapshot does", error);
  }
  const found = (head as { format?: unknown } | null)?.format;
  if (typeof found === "string" && found.startsWith(family) && found !== format) throw tooNew(path, found);
  const parsed = SnapshotHead.safeParse(head);
  if (!parsed.success) throw storeCorrupt(path, "it does not begin as a snapshot does", parsed.error);
  return parsed.data;
}

function* chunksOf(entries: Iterable<unknown>): Generator<{ readonly text: string; readonly count: number }> {
  let line: string[] = [];
  let chars = 0;
  for (const entry of entries) {
    const text = JSON.stringify(entry);
    line.push(text);
    chars += text.length + 1;
    if (chars < chunkChars) continue;
    yield { text: `[${line.join(",")}]\n`, count: line.length };
    line = [];
    chars = 0;
  }
  if (line.length > 0) yield { text: `[${line.join(",")}]\n`, count: line.length };
}

function* entriesOf(body: Buffer, head: SnapshotHead, path: string): Generator {
  let count = 0;
  for (let from = 0; from < body.length;) {
    const to = body.indexOf(0x0a, from);
    const line = JSON.parse(body.toString("utf8", from, to)) as unknown[];
    yield* line;
    count += line.length;
    from = to + 1;
  }
  if (count !== head.entries) throw storeCorrupt(path, `it holds ${count} entries, not ${head.entries}`);
}
