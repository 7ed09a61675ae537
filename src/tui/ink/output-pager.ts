import { parseEvent } from "#engine/events/recording.ts";
import type { RowWindow } from "./blocks.ts";
import { finder, outputRows, type OutputRow } from "./output-rows.ts";

/** Reads `length` bytes of a run's record from the offset `at`; fewer at its end. */
export type ReadRecord = (at: number, length: number) => Promise<Uint8Array>;

/** A step's output on a node, and its layout. */
export interface OutputPlace {
  readonly node: string;
  /** The step's id. */
  readonly step: string;
  /** Columns that a row has. */
  readonly width: number;
  /** Whether longer lines continue in the next row. */
  readonly wrap: boolean;
  /** The searched text; empty: no search. */
  readonly find: string;
}

/** Whether two places have the same step, width, wrapping and search. */
export function isSamePlace(a: OutputPlace, b: OutputPlace): boolean {
  return isSameStep(a, b) && a.width === b.width && a.wrap === b.wrap && a.find === b.find;
}

export function isSameStep(a: OutputPlace, b: OutputPlace): boolean {
  return a.node === b.node && a.step === b.step;
}

/** The whole output of one step, as far as it has been read. */
export type PagedOutput = Pick<OutputPager, "place" | "rows" | "matches" | "slice">;

/** Bytes of one read. */
const portion = 1 << 20;
/** Fewest rows between two remembered offsets. */
const stride = 512;
/** Rows that are loaded before and after the visible rows. */
const around = 512;
/** Most matches of a search that are remembered. */
export const mostMatches = 10_000;

/** A remembered row of the output, and its place in the record. */
interface RowOffset {
  readonly row: number;
  /** The offset of the event's line in the record. */
  readonly at: number;
}

/**
 * The output of a step, read from the run's record during scrolling. Memory holds the rows around the visible ones, and
 * an offset in the record for every few hundred rows. `news` is called after each read that may have brought rows.
 */
export class OutputPager {
  readonly place: OutputPlace;
  readonly #find: RegExp | undefined;
  readonly #read: ReadRecord;
  readonly #news: () => void;
  readonly #needles: readonly [output: Buffer, started: Buffer];
  #offsets: RowOffset[] = [];
  #rows = 0;
  #matches: number[] = [];
  /** Bytes of the record that were scanned. */
  #scanned = 0;
  /** The number of the last event to scan. */
  #until = 0;
  /** Counts restarts: a scan of an earlier turn changes nothing any more. */
  #turn = 0;
  #isScanning = false;
  #isComplete = false;
  #window: { readonly top: number; readonly rows: readonly OutputRow[] } | undefined;
  #wanted: RowWindow | undefined;
  #isLoading = false;

  constructor(place: OutputPlace, read: ReadRecord, news: () => void) {
    const { node, step, find } = place;
    [this.place, this.#find, this.#read, this.#news] = [place, finder(find), read, news];
    // In JSON no text can contain these words: its quotes are escaped.
    const ofNode = `"node":${JSON.stringify(node)},`;
    this.#needles = [
      Buffer.from(`"type":"step.output",${ofNode}"step":${JSON.stringify(step)},`),
      Buffer.from(`"type":"step.started",${ofNode}`),
    ];
  }

  /** Whether a scan of the record has ended, even by an error; before that the model may have more lines. */
  get isComplete(): boolean {
    return this.#isComplete;
  }

  get rows(): number {
    return this.#rows;
  }

  /** The rows in which a match begins, at most the first {@link mostMatches}. */
  get matches(): readonly number[] {
    return this.#matches;
  }

  /** Reads the step's output up to the event of this number. */
  follow(seq: number): void {
    if (seq < this.#until) this.#restart();
    if (seq === this.#until) return;
    this.#until = seq;
    if (!this.#isScanning) void this.#scan();
  }

  /** The rows from `top` to `end`; undefined while they are being read. */
  slice(top: number, end: number): readonly OutputRow[] | undefined {
    const window = this.#window;
    if (window && window.top <= top && end <= window.top + window.rows.length)
      return window.rows.slice(top - window.top, end - window.top);
    this.#wanted = { top: Math.max(0, top - around), end: end + around };
    if (!this.#isLoading) void this.#load();
    return undefined;
  }

  /** Begins anew after a replay went back. */
  #restart(): void {
    this.#turn += 1;
    [this.#offsets, this.#rows, this.#matches, this.#scanned, this.#window] = [[], 0, [], 0, undefined];
  }

  async #scan(): Promise<void> {
    this.#isScanning = true;
    try {
      for (let until = -1; until !== this.#until;) {
        const turn = this.#turn;
        until = this.#until;
        await this.#walk({
          start: this.#scanned,
          until,
          call: (at, rows) => void (turn === this.#turn && this.#count(at, rows)),
          passed: (at) => void (turn === this.#turn && (this.#scanned = at)),
        });
        if (turn !== this.#turn) until = -1;
      }
    } catch {
      // The record cannot be read any more: the rows so far stay, and the model has the last lines.
    } finally {
      [this.#isScanning, this.#isComplete] = [false, true];
      this.#news();
    }
  }

  #count(at: number, rows: readonly OutputRow[] | "started"): void {
    if (rows === "started") {
      [this.#offsets, this.#rows, this.#matches, this.#window] = [[], 0, [], undefined];
      return;
    }
    const last = this.#offsets.at(-1);
    if (!last || this.#rows - last.row >= stride) this.#offsets.push({ row: this.#rows, at });
    for (const [index, { isMatch }] of rows.entries())
      if (isMatch && this.#matches.length < mostMatches) this.#matches.push(this.#rows + index);
    this.#rows += rows.length;
  }

  async #load(): Promise<void> {
    this.#isLoading = true;
    try {
      while (this.#wanted) {
        const { top, end } = this.#wanted;
        this.#wanted = undefined;
        const from = this.#offsets.findLast(({ row }) => row <= top) ?? { row: 0, at: 0 };
        const rows: OutputRow[] = [];
        const call = (_: number, some: readonly OutputRow[] | "started") => {
          if (some === "started") return undefined;
          rows.push(...some);
          return from.row + rows.length >= end ? "enough" : undefined;
        };
        await this.#walk({ start: from.at, until: this.#until, call });
        this.#window = { top: from.row, rows };
      }
    } catch {
      this.#window = undefined;
    } finally {
      this.#isLoading = false;
      this.#news();
    }
  }

  /**
   * Calls `call` for each output of the step from the offset `start` on, up to the event `until`, and `passed` with each offset
   * reached.
   */
  async #walk({ start, until, call, passed = () => undefined }: Walk): Promise<void> {
    let at = start;
    let rest: Buffer = Buffer.alloc(0);
    for (;;) {
      const bytes = Buffer.from(await this.#read(at + rest.length, portion));
      const buffer = rest.length === 0 ? bytes : Buffer.concat([rest, bytes]);
      const end = buffer.lastIndexOf(10) + 1;
      for (const { from, to, isStart } of this.#eventsIn(buffer, end)) {
        const event = parseEvent(buffer.toString("utf8", from, to));
        if (event && event.seq > until) {
          passed(at + from);
          return;
        }
        if (event?.type === "step.started" && event.step === this.place.step) call(at + from, "started");
        if (!isStart && event?.type === "step.output" && call(at + from, this.#rowsOf(event)) === "enough") return;
      }
      at += end;
      rest = buffer.subarray(end);
      passed(at);
      if (bytes.length === 0) return;
    }
  }

  /** The lines of the record that may be about the step, in their order. */
  *#eventsIn(buffer: Buffer, end: number) {
    const next = this.#needles.map((needle) => buffer.indexOf(needle));
    for (;;) {
      const found = next.filter((index) => index >= 0 && index < end);
      if (found.length === 0) return;
      const first = Math.min(...found);
      const which = next.indexOf(first);
      const [from, to] = [buffer.lastIndexOf(10, first) + 1, buffer.indexOf(10, first)];
      yield { from, to, isStart: which === 1 };
      next[which] = buffer.indexOf(this.#needles[which as 0 | 1], to);
    }
  }

  #rowsOf({
    text,
    stream,
    skipped = 0,
  }: {
    readonly text: string;
    readonly stream: "out" | "err";
    readonly skipped?: number;
  }) {
    const rows = text === "" ? [] : outputRows(text, () => stream, { ...this.place, find: this.#find });
    return skipped > 0 ? [{ text: `… ${skipped} bytes left out`, stream }, ...rows] : rows;
  }
}

interface Walk {
  readonly start: number;
  readonly until: number;
  /** Takes the offset of an event and its rows, or “started” when the step begins (again); “enough” ends the walk. */
  readonly call: (at: number, rows: readonly OutputRow[] | "started") => "enough" | undefined | void;
  readonly passed?: (at: number) => void;
}
