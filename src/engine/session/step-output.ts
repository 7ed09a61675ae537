import { cleanText } from "#engine/events/clean.ts";
import { WholeLines } from "#engine/events/whole-lines.ts";

/** The first chunks of an attempt, which are small; a node keeps all of them (runner.sh, k_reader). */
const smallChunks = 20;
/** Numbers of chunks for each attempt at a step. */
const numbersPerAttempt = 1_000_000;
/** Large chunks whose sizes are kept: the 64 that a node keeps of an answer to `kcore exec --lock` (segment.ts), and a few more. */
const keptChunks = 72;

interface OutputStream {
  /** Bytes received, by number of the chunk. */
  readonly chunks: Map<number, number>;
  readonly lines: WholeLines;
  readonly decoder: InstanceType<typeof TextDecoder>;
  lost: number;
}

/** A new part of a step's output. */
export interface NewOutput {
  readonly text: string;
  /** The bytes of the text. */
  readonly bytes: Uint8Array;
  /** Bytes that the node left out before the text. */
  readonly skipped: number;
}

/** The received output of steps: each byte is reported once, and lines are reported whole. */
export class StepOutput {
  readonly #now: () => number;
  /** By `KEY.STREAM`; the stream is `o` or `e`. */
  readonly #streams = new Map<string, OutputStream>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** For an attach: `KEY.STREAM.CHUNK:BYTES …`. */
  get seen(): string {
    const streams = [...this.#streams].flatMap(([id, { chunks }]) =>
      [...chunks].map(([chunk, bytes]) => `${id}.${chunk}:${bytes}`),
    );
    return streams.join(" ");
  }

  /** Takes a part of a chunk: `OFFSET BYTES LOST` and the bytes. Returns the output to report now. */
  take(
    id: string,
    chunk: number,
    [offset = "0", , lost = "0"]: readonly string[],
    bytes: Uint8Array,
  ): readonly NewOutput[] {
    let stream = this.#streams.get(id);
    if (!stream) this.#streams.set(id, (stream = newStream()));
    const known = stream.chunks.get(chunk) ?? 0;
    const fresh = bytes.subarray(Math.max(0, known - Number(offset)));
    stream.chunks.set(chunk, Math.max(known, Number(offset) + bytes.length));
    if (stream.chunks.size > smallChunks + keptChunks) forgetOldest(stream.chunks);
    const skipped = Number(lost) - stream.lost;
    stream.lost = Number(lost);
    if (fresh.length === 0) return [];
    const before = skipped > 0 ? outputOf(stream, stream.lines.end()) : [];
    return [...before, ...outputOf(stream, stream.lines.take(fresh, this.#now()), skipped)];
  }

  /** The unfinished last lines of a step that has ended. */
  drain(key: string): readonly (NewOutput & { readonly stream: "out" | "err" })[] {
    return (["out", "err"] as const).flatMap((stream) => {
      const known = this.#streams.get(`${key}.${stream[0]}`);
      return known ? outputOf(known, known.lines.end()).map((made) => ({ ...made, stream })) : [];
    });
  }

  /** Drops a step's output: the step is over, or another attempt begins. */
  forget(key: string): void {
    for (const stream of ["o", "e"]) this.#streams.delete(`${key}.${stream}`);
  }
}

export function newStream(): OutputStream {
  return { chunks: new Map(), lines: new WholeLines(), decoder: new TextDecoder("utf-8"), lost: 0 };
}

/** The bytes of a stream, with their clean text. */
export function outputOf({ decoder }: OutputStream, bytes: Uint8Array, skipped = 0): readonly NewOutput[] {
  if (bytes.length === 0 && skipped === 0) return [];
  return [{ text: cleanText(decoder.decode(bytes, { stream: true })), bytes, skipped }];
}

/** Drops the oldest large chunk but the first: the node keeps the first large chunk and the small chunks before it. */
function forgetOldest(chunks: Map<number, number>): void {
  chunks.delete(Math.min(...[...chunks.keys()].filter((chunk) => chunk % numbersPerAttempt > smallChunks)));
}

/** The bytes in base64, unless the text in UTF-8 is equal to them. */
export function rawBytes({ text, bytes }: NewOutput): { readonly bytes?: string } {
  return Buffer.from(text).equals(bytes) ? {} : { bytes: Buffer.from(bytes).toString("base64") };
}
