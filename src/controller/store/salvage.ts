import { join } from "node:path";
import { PageReader } from "#crdt/page.ts";
import { vectorOf } from "../replica/catch-up.ts";
import type { JournalRecord } from "../replica/replica-ports.ts";
import type { StoreDisk } from "./durable-disk.ts";
import type { JournalFrame } from "./journal-frames.ts";
import { writesIn, type LostWrite } from "./lost-writes.ts";
import { newestIntact, readableOf, recordOf } from "./recover.ts";
import { piecesOf, segmentsAmong, type Gap } from "./segments.ts";
import { snapshotsAmong } from "./snapshot-file.ts";

/** The intact records of a damaged folder, and its losses. */
export interface Salvaged {
  /** The records up to the first loss unchanged; later ones as `salvaged`. */
  readonly entries: readonly JournalRecord[];
  /** Index of the last record. */
  readonly index: number;
  /** The number of intact records of the journal behind the first loss. */
  readonly behind: number;
  /** The number of lost records, as far as it can be counted. */
  readonly lostRecords: number;
  /** The writes of the lost records, as far as their bytes can be read. */
  readonly lost: readonly LostWrite[];
  /** The faults found, for the operator. */
  readonly notes: readonly string[];
}

/**
 * Reads a damaged folder: the newest intact snapshot, and every later record of the journal with a valid checksum. Records behind a loss
 * become `salvaged`, apart from the state, whose version vector must not cover lost records.
 * @throws KcoreError STORE_TOO_NEW
 */
export async function salvage(disk: StoreDisk, folder: string): Promise<Salvaged> {
  const names = await disk.list(folder);
  const { snapshot, newest = 0, notes } = await newestIntact(disk, folder, names);
  const found = new Findings(snapshot?.index ?? 0, snapshot ? [...readableOf(snapshot.entries, folder)] : [], notes);
  const segments = segmentsAmong(names);
  for (const [at, segment] of segments.entries()) {
    if ((segments[at + 1]?.first ?? Infinity) <= found.next) continue;
    const path = join(folder, segment.name);
    const bytes = await disk.read(path);
    found.segment(segment.first);
    for (const piece of piecesOf(bytes, path))
      if ("damage" in piece) found.gap(path, bytes, piece, at === segments.length - 1);
      else found.frame(piece);
  }
  found.close(newest);
  // Without an intact snapshot and with a loss: the damaged snapshot's bytes show which keys are lost.
  const [damaged] = snapshotsAmong(names);
  if (snapshot || !damaged || found.lostRecords === 0) return found;
  found.lose((await disk.read(join(folder, damaged.name))).toString("utf8"));
  found.notes.push(
    "no snapshot is whole; another controller has the whole state: kcore controller join --fresh HOST:PORT",
  );
  return found;
}

/** A record behind a loss, reduced to its registers: its vector and origin may be wrong without the lost records. Undefined for `meta`. */
export function behindLoss(record: JournalRecord): JournalRecord | undefined {
  return record.t === "meta" ? undefined : { t: "salvaged", page: record.page };
}

/** Turns a salvaged record into a merge, for a controller that is alone: no other controller has the lost records. */
export function mergedAtOnce(record: JournalRecord): JournalRecord {
  if (record.t !== "salvaged") return record;
  const { page } = record;
  return { t: "apply", page, upto: vectorOf(new PageReader().read(page)) };
}

class Findings implements Salvaged {
  readonly entries: JournalRecord[];
  readonly notes: string[];
  readonly lost: LostWrite[] = [];
  behind = 0;
  lostRecords = 0;
  /** Index of the next record to find. */
  next: number;
  /** Index of the record that belongs at the present position of the journal. */
  #at = 1;
  /** The damaged bytes since the last intact frame, as text. */
  #texts: string[] = [];

  constructor(base: number, entries: JournalRecord[], notes: readonly string[]) {
    this.next = base + 1;
    this.entries = entries;
    this.notes = [...notes];
  }

  get index(): number {
    return this.next - 1;
  }

  segment(first: number): void {
    this.#at = first;
  }

  frame({ index, records }: JournalFrame): void {
    this.#missingUntil(index);
    this.#texts = [];
    this.#at = index + records.length;
    const fresh = records.slice(Math.max(0, this.next - index));
    for (const text of fresh) {
      const record = recordOf(text, "the journal");
      if (this.lostRecords === 0) this.entries.push(record);
      else {
        this.behind++;
        const salvaged = behindLoss(record);
        if (salvaged) this.entries.push(salvaged);
      }
    }
    this.next = Math.max(this.next, this.#at);
  }

  gap(path: string, bytes: Buffer, { from, to, damage, isTorn }: Gap, isLast: boolean): void {
    const text = bytes.toString("utf8", from, to);
    this.#texts.push(text);
    const where = `(at byte ${from}: ${damage})`;
    if (isTorn && isLast) {
      this.notes.push(`${path}: the last ${to - from} bytes were never finished ${where}`);
      return;
    }
    this.notes.push(`${path}: ${to - from} bytes are damaged ${where}`);
    this.#at += Math.max(1, text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length);
  }

  /** Called at the end. `newest`: the index of the newest snapshot, up to which records must have existed. */
  close(newest: number): void {
    this.#missingUntil(Math.max(newest + 1, this.#at));
  }

  #missingUntil(index: number): void {
    const { next } = this;
    if (index <= next) return;
    this.notes.push(
      index === next + 1 ? `record ${next} is lost here` : `records ${next} to ${index - 1} are lost here`,
    );
    this.lostRecords += index - next;
    for (const text of this.#texts) this.lose(text);
    this.next = index;
  }

  lose(text: string): void {
    for (const write of writesIn(text)) this.lost.push(write);
  }
}
