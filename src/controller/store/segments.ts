import { join } from "node:path";
import type { StoreDisk } from "./durable-disk.ts";
import { decodeFrame, hasMissingSector, isTorn, nextFrameAfter, type JournalFrame } from "./journal-frames.ts";
import { tooNew } from "./store-problems.ts";

/** The first line of every segment. */
export const segmentHead = Buffer.from("kcore-journal/1\n", "latin1");

/** One file of the journal, named by the index of its first record. */
export interface JournalSegment {
  readonly name: string;
  readonly first: number;
}

export function segmentName(first: number): string {
  return `journal-${String(first).padStart(16, "0")}.ndjson`;
}

export function segmentsAmong(names: readonly string[]): readonly JournalSegment[] {
  return names
    .map((name) => ({ name, first: Number(/^journal-(\d{16})\.ndjson$/.exec(name)?.[1] ?? Number.NaN) }))
    .filter(({ first }) => !Number.isNaN(first))
    .toSorted((a, b) => a.first - b.first);
}

/** The content of a segment up to its first damage. */
export interface SegmentContent {
  readonly records: readonly string[];
  /** The length of the intact part, bytes; 0 when the first line is damaged. */
  readonly end: number;
  readonly damage?: SegmentDamage;
}

/** The bytes behind the intact part of a segment. */
export interface SegmentDamage {
  readonly bytes: number;
  readonly what: string;
  /** Whether the damage may be an unfinished write, with which the last segment may end. */
  readonly isTorn: boolean;
}

/** Reads a segment up to the first damage. @throws KcoreError STORE_TOO_NEW */
export async function readSegment(disk: StoreDisk, folder: string, segment: JournalSegment): Promise<SegmentContent> {
  const { first } = segment;
  const path = join(folder, segment.name);
  const bytes = await disk.read(path);
  const records: string[] = [];
  let end = 0;
  for (const piece of piecesOf(bytes, path)) {
    if ("damage" in piece) {
      const damage = {
        bytes: bytes.length - piece.from,
        what: `at byte ${piece.from}: ${piece.damage}`,
        isTorn: piece.isTorn,
      };
      return { records, end: piece.from, damage };
    }
    const expected = first + records.length;
    if (piece.index !== expected) {
      const what = `at byte ${end}: record ${piece.index} where ${expected} should be`;
      return { records, end, damage: { bytes: bytes.length - end, what, isTorn: false } };
    }
    for (const record of piece.records) records.push(record);
    ({ end } = piece);
  }
  return { records, end };
}

/** A range of bytes of a segment without an intact frame. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** The reason why there is no frame. */
  readonly damage: string;
  /** Whether the range may be an unfinished write. */
  readonly isTorn: boolean;
}

/** The parts of a segment in order: intact frames, and the gaps between them. @throws KcoreError STORE_TOO_NEW */
export function* piecesOf(bytes: Buffer, path: string): Generator<JournalFrame | Gap> {
  let from = 0;
  const head = bytes.subarray(0, segmentHead.length);
  if (head.equals(segmentHead)) from = segmentHead.length;
  else {
    const line = head.toString("latin1");
    if (/^kcore-journal\/(?!1\n)\d+\n/.test(line)) throw tooNew(path, line.trim());
    if (bytes.length === 0) return;
    const to = nextFrameAfter(bytes, -1);
    const isTorn = segmentHead.indexOf(bytes) === 0 || hasMissingSector(bytes, 0);
    const damage = "it does not begin as a journal does";
    yield { from, to: to ?? bytes.length, damage, isTorn: isTorn && to === undefined };
    from = to ?? bytes.length;
  }
  while (from < bytes.length) {
    const frame = decodeFrame(bytes, from);
    if ("damage" in frame) {
      const to = nextFrameAfter(bytes, from);
      yield { from, to: to ?? bytes.length, damage: frame.damage, isTorn: to === undefined && isTorn(bytes, from) };
      from = to ?? bytes.length;
    } else {
      yield frame;
      from = frame.end;
    }
  }
}
