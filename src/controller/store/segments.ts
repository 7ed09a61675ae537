import { join } from "node:path";
import type { Disk } from "./disk.ts";
import { decodeFrame, hasFrameAfter } from "./frames.ts";
import { corrupt, tooNew } from "./problems.ts";

/** The first line of every segment. */
export const segmentHead = Buffer.from("kcore-journal/1\n", "latin1");

/** One file of the journal. It is named by the index of its first record, so that names sort in order. */
export interface Segment {
  readonly name: string;
  readonly first: number;
}

export function segmentName(first: number): string {
  return `journal-${String(first).padStart(16, "0")}.ndjson`;
}

export function segmentsAmong(names: readonly string[]): readonly Segment[] {
  return names
    .map((name) => ({ name, first: Number(/^journal-(\d{16})\.ndjson$/.exec(name)?.[1] ?? Number.NaN) }))
    .filter(({ first }) => !Number.isNaN(first))
    .toSorted((a, b) => a.first - b.first);
}

/** What a segment holds. */
export interface SegmentContent {
  readonly records: readonly string[];
  /** Up to where it is whole; 0 when even its first line is not. */
  readonly end: number;
  /** What stands behind `end`: the tail of a write that never finished, if this is the last segment. */
  readonly torn?: { readonly bytes: number; readonly damage: string };
}

/**
 * Reads a segment.
 * @throws KcoreError STORE_CORRUPT when it is damaged anywhere but at its very end, STORE_TOO_NEW
 */
export async function readSegment(disk: Disk, folder: string, { name, first }: Segment): Promise<SegmentContent> {
  const path = join(folder, name);
  const bytes = await disk.read(path);
  const head = bytes.subarray(0, segmentHead.length);
  if (!head.equals(segmentHead)) {
    const line = head.toString("latin1");
    const isOther = line.startsWith("kcore-journal/") && line.endsWith("\n") && line !== segmentHead.toString("latin1");
    if (isOther) throw tooNew(path, line.trim());
    if (hasFrameAfter(bytes, -1)) throw corrupt(path, "it does not begin as a journal does");
    return { records: [], end: 0, ...tornOf(bytes.length, "its first line is cut off") };
  }
  const records: string[] = [];
  let end = segmentHead.length;
  while (end < bytes.length) {
    const frame = decodeFrame(bytes, end);
    if ("damage" in frame) {
      if (hasFrameAfter(bytes, end)) throw corrupt(path, `at byte ${end}, before whole records: ${frame.damage}`);
      return { records, end, ...tornOf(bytes.length - end, frame.damage) };
    }
    if (frame.index !== first + records.length) {
      throw corrupt(path, `at byte ${end}: record ${frame.index} where ${first + records.length} should be`);
    }
    for (const record of frame.records) records.push(record);
    end = frame.end;
  }
  return { records, end };
}

function tornOf(
  bytes: number,
  damage: string,
): { readonly torn?: { readonly bytes: number; readonly damage: string } } {
  return bytes === 0 ? {} : { torn: { bytes, damage } };
}
