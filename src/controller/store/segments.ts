import { join } from "node:path";
import type { Disk } from "./durable-disk.ts";
import { decodeFrame, hasFrameAfter } from "./journal-frames.ts";
import { tooNew } from "./store-problems.ts";

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
  readonly damage?: Damage;
}

/** What stands behind the whole part of a segment. */
export interface Damage {
  readonly bytes: number;
  readonly what: string;
  /** Nothing whole follows: the last segment may end so, when a write was never finished. */
  readonly isTail: boolean;
}

/** Reads a segment up to the first damage. @throws KcoreError STORE_TOO_NEW */
export async function readSegment(disk: Disk, folder: string, { name, first }: Segment): Promise<SegmentContent> {
  const path = join(folder, name);
  const bytes = await disk.read(path);
  const records: string[] = [];
  const damagedAt = (end: number, what: string): SegmentContent => {
    const damage = {
      bytes: bytes.length - end,
      what: `at byte ${end}: ${what}`,
      isTail: !hasFrameAfter(bytes, end - 1),
    };
    return { records, end, ...(damage.bytes > 0 && { damage }) };
  };
  const head = bytes.subarray(0, segmentHead.length);
  if (!head.equals(segmentHead)) {
    const line = head.toString("latin1");
    if (/^kcore-journal\/(?!1\n)\d+\n/.test(line)) throw tooNew(path, line.trim());
    return damagedAt(0, "it does not begin as a journal does");
  }
  let end = segmentHead.length;
  while (end < bytes.length) {
    const frame = decodeFrame(bytes, end);
    if ("damage" in frame) return damagedAt(end, frame.damage);
    const expected = first + records.length;
    if (frame.index !== expected) return damagedAt(end, `record ${frame.index} where ${expected} should be`);
    for (const record of frame.records) records.push(record);
    end = frame.end;
  }
  return { records, end };
}
