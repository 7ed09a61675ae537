import { join } from "node:path";
import { KcoreError } from "#errors/problem.ts";
import type { Disk } from "./disk.ts";
import { corrupt } from "./problems.ts";
import { readSegment, segmentsAmong } from "./segments.ts";
import type { Segment } from "./segments.ts";
import { isAside, readSnapshot, snapshotsAmong } from "./snapshot.ts";
import type { Snapshot } from "./snapshot.ts";

/** What a folder holds after a crash at any moment. */
export interface Recovered {
  /** The newest whole snapshot; absent in a new folder. */
  readonly snapshot?: Snapshot;
  /** JSON texts of the journal's records after the snapshot, in order. */
  readonly records: readonly string[];
  /** Index of the next record. */
  readonly next: number;
  readonly segments: readonly Segment[];
  /** How many bytes of the last segment are whole. */
  readonly end: number;
  /** What was found amiss and could be mended without losing what was acknowledged. */
  readonly notes: readonly string[];
}

/**
 * Reads a folder: the newest whole snapshot and what the journal holds beyond it. Changes nothing. The end of a write that never
 * finished (and so was never acknowledged) is left out; a damaged snapshot is passed over only when an older one
 * and the journal give the same state. Anything else is refused: guessing would lose what was acknowledged.
 * @throws KcoreError STORE_CORRUPT, STORE_TOO_NEW
 */
export async function recover(disk: Disk, folder: string): Promise<Recovered> {
  const names = await disk.list(folder);
  if (names.includes("state.json")) {
    throw corrupt(join(folder, "state.json"), "it was written by a kcore before replication");
  }
  const segments = segmentsAmong(names);
  const { snapshot, notes, newest } = await newestWhole(disk, folder, names);
  const base = snapshot?.index ?? 0;
  const needed = segments.filter((_, place) => (segments[place + 1]?.first ?? Infinity) > base + 1);
  const first = needed[0];
  if (newest === undefined && !first) return { records: [], next: 1, segments, end: 0, notes };
  if (!first || first.first > base + 1) {
    const from = first ? `begins at record ${first.first}` : "is missing";
    throw corrupt(folder, `the journal ${from}, but the state ends at record ${base}`);
  }
  const records: string[] = [];
  let next = first.first;
  let end = 0;
  for (const [place, segment] of needed.entries()) {
    const path = join(folder, segment.name);
    if (segment.first !== next) throw corrupt(path, `it begins at record ${segment.first} where ${next} should be`);
    const content = await readSegment(disk, folder, segment);
    const isLast = place === needed.length - 1;
    if (content.torn) {
      const what = `at byte ${content.end}: ${content.torn.damage}`;
      if (!isLast) throw corrupt(path, what);
      notes.push(`${path}: the last ${content.torn.bytes} bytes were never finished (${what})`);
    }
    const known = Math.max(0, base + 1 - next);
    for (const record of known === 0 ? content.records : content.records.slice(known)) records.push(record);
    next += content.records.length;
    end = content.end;
  }
  const last = Math.max(base, newest ?? 0);
  if (next <= last)
    throw corrupt(folder, `the journal ends at record ${next - 1}, but record ${last} was acknowledged`);
  return { ...(snapshot && { snapshot }), records, next, segments, end, notes };
}

/** Files of snapshots that were never finished. */
export async function leftovers(disk: Disk, folder: string): Promise<readonly string[]> {
  return (await disk.list(folder)).filter((name) => isAside(name)).map((name) => join(folder, name));
}

async function newestWhole(
  disk: Disk,
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
