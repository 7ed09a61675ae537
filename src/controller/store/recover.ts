import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import type { JournalRecord } from "../replica/replica-ports.ts";
import type { StoreDisk } from "./durable-disk.ts";
import { storeCorrupt, tooNew } from "./store-problems.ts";
import { readSegment, segmentsAmong, type JournalSegment } from "./segments.ts";
import { isUnfinishedSnapshot, readSnapshot, snapshotsAmong, type Snapshot } from "./snapshot-file.ts";

/** The content of a folder after a crash at any moment. */
export interface Recovered {
  /** The newest intact snapshot; absent if there is none. */
  readonly snapshot?: Snapshot;
  /** JSON texts of the journal's records after the snapshot, in order. */
  readonly records: readonly string[];
  /** Index of the next record. */
  readonly next: number;
  readonly segments: readonly JournalSegment[];
  /** The length of the intact part of the last segment. */
  readonly end: number;
  /** Faults that cost no acknowledged record. */
  readonly notes: readonly string[];
}

/**
 * Reads a folder without changing it: the newest intact snapshot, and the journal behind it. It leaves out an unfinished write at the end,
 * which was never acknowledged. It skips a damaged snapshot if an older one and the journal give the same state. It refuses
 * any other damage: a guess could lose acknowledged records.
 * @throws KcoreError STORE_CORRUPT, STORE_TOO_NEW
 */
export async function recover(disk: StoreDisk, folder: string): Promise<Recovered> {
  const names = await disk.list(folder);
  const unfinished = names.find((name) => Object.values(stagePrefixes).some((prefix) => name.startsWith(prefix)));
  if (unfinished !== undefined) throw storeCorrupt(join(folder, unfinished), "a restore was interrupted");
  const segments = segmentsAmong(names);
  const { snapshot, notes, newest } = await newestIntact(disk, folder, names);
  const base = snapshot?.index ?? 0;
  const records: string[] = [];
  let next = base + 1;
  let end = 0;
  const found = (): Recovered => ({ ...(snapshot && { snapshot }), records, next, segments, end, notes });
  const needed = segments.filter((_, at) => (segments[at + 1]?.first ?? Infinity) > base + 1);
  const [first] = needed;
  if (!first) {
    if (newest === undefined) return found();
    throw storeCorrupt(folder, "the journal is missing");
  }
  if (first.first > base + 1) {
    throw storeCorrupt(folder, `the journal begins at record ${first.first}, but the state ends at record ${base}`);
  }
  next = first.first;
  for (const [at, segment] of needed.entries()) {
    const path = join(folder, segment.name);
    if (segment.first !== next)
      throw storeCorrupt(path, `it begins at record ${segment.first} where ${next} should be`);
    const content = await readSegment(disk, folder, segment);
    for (const record of content.records.slice(Math.max(0, base + 1 - next))) records.push(record);
    next += content.records.length;
    end = content.end;
    if (!content.damage) continue;
    const { bytes, what, isTorn } = content.damage;
    if (!isTorn || at < needed.length - 1) throw storeCorrupt(path, what);
    notes.push(`${path}: the last ${bytes} bytes were never finished (${what})`);
  }
  const last = Math.max(base, newest ?? 0);
  if (next > last) return found();
  throw storeCorrupt(folder, `the journal ends at record ${next - 1}, but record ${last} was acknowledged`);
}

/**
 * The prefixes of the folder with a new state, by the stage of the replacement: the new state is being written; it is complete, and the
 * former state is being moved aside; the new state is being moved into place.
 */
export const stagePrefixes = { restoring: "restoring-", replacing: "replacing-", placing: "placing-" } as const;

/** The recovered records: the snapshot's, then the journal's. @throws KcoreError STORE_TOO_NEW */
export function* recordsOf({ snapshot, records }: Recovered, folder: string): Generator<JournalRecord> {
  if (snapshot) yield* readableOf(snapshot.entries, folder);
  for (const record of records) yield recordOf(record, folder);
}

/** Parses a record of the journal. @throws KcoreError STORE_TOO_NEW */
export function recordOf(text: string, path: string): JournalRecord {
  return readable(JSON.parse(text), path);
}

/** A snapshot's entries as records. @throws KcoreError STORE_TOO_NEW */
export function* readableOf(entries: Iterable<unknown>, path: string): Generator<JournalRecord> {
  for (const entry of entries) yield readable(entry, path);
}

const recordTypes: readonly unknown[] = ["part", "apply", "meta", "salvaged"] satisfies readonly JournalRecord["t"][];
const newestFormat = 1;

/** Checks that this version knows a record's type and format: a newer version may write new records into files of the same format. */
function readable(record: unknown, path: string): JournalRecord {
  const { t, format = newestFormat } = record as { readonly t?: unknown; readonly format?: unknown };
  if (!recordTypes.includes(t)) throw tooNew(path, `record ${String(t)}`);
  if (!(Number(format) <= newestFormat)) throw tooNew(path, `records ${String(format)}`);
  return record as JournalRecord;
}

/** The files of snapshots that were never finished. */
export async function leftovers(disk: StoreDisk, folder: string): Promise<readonly string[]> {
  return (await disk.list(folder)).filter((name) => isUnfinishedSnapshot(name)).map((name) => join(folder, name));
}

/** The newest intact snapshot, and as `newest` the index of the newest one, intact or not. @throws KcoreError STORE_TOO_NEW */
export async function newestIntact(
  disk: StoreDisk,
  folder: string,
  names: readonly string[],
): Promise<{ readonly snapshot?: Snapshot; readonly newest?: number; readonly notes: string[] }> {
  const found = snapshotsAmong(names);
  const newest = found[0] && { newest: found[0].index };
  const notes: string[] = [];
  for (const { name } of found) {
    try {
      return { snapshot: await readSnapshot(disk, join(folder, name)), ...newest, notes };
    } catch (error) {
      const isDamage = error instanceof KcoreError && error.problems[0]?.code === "STORE_CORRUPT";
      if (!isDamage) throw error;
      notes.push(`${error.message}; an older one is used, with the journal`);
    }
  }
  return { ...newest, notes };
}
