import { cleanText } from "#engine/events/clean.ts";
import { WholeLines } from "#engine/events/whole-lines.ts";

/** Of a stream a node still has twenty pieces, the first large chunk and the last ones (runner.sh, k_reader), by their numbers. */
const [piecesOfTurn, turn] = [20, 1_000_000];
/** Large chunks that are kept in mind: those, of which an answer has 64 (segment.ts), and a few more. */
const keptChunks = 72;

export interface Stream {
  /** Bytes received, by number of the chunk. */
  readonly chunks: Map<number, number>;
  readonly lines: WholeLines;
  readonly decoder: InstanceType<typeof TextDecoder>;
  lost: number;
}

/** What is new of a piece of output. */
export interface NewOutput {
  readonly text: string;
  /** What the text was made of. */
  readonly bytes: Uint8Array;
  /** Bytes that were left out before it. */
  readonly skipped: number;
}

/** What was received of the steps' output, so that no byte is told twice, and lines are told whole. */
export class StepOutput {
  readonly #now: () => number;
  /** By `KEY.STREAM`. */
  readonly #streams = new Map<string, Stream>();

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

  /** Takes a piece, `OFFSET BYTES LOST` and the bytes themselves; gives what may be told now. */
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
    if (stream.chunks.size > piecesOfTurn + keptChunks) forgetOldest(stream.chunks);
    const skipped = Number(lost) - stream.lost;
    stream.lost = Number(lost);
    if (fresh.length === 0) return [];
    const before = skipped > 0 ? tell(stream, stream.lines.end()) : [];
    return [...before, ...tell(stream, stream.lines.take(fresh, this.#now()), skipped)];
  }

  /** Lines that have not ended when the step has. */
  drain(key: string): readonly (NewOutput & { readonly stream: "out" | "err" })[] {
    return (["out", "err"] as const).flatMap((stream) => {
      const known = this.#streams.get(`${key}.${stream[0]}`);
      return known ? tell(known, known.lines.end()).map((made) => ({ ...made, stream })) : [];
    });
  }

  /** The step is over, or another attempt's output begins from its first byte again. */
  forget(key: string): void {
    for (const stream of ["o", "e"]) this.#streams.delete(`${key}.${stream}`);
  }
}

export function newStream(): Stream {
  return { chunks: new Map(), lines: new WholeLines(), decoder: new TextDecoder("utf-8"), lost: 0 };
}

/** Bytes of a stream, as clean text and as they are. */
export function tell({ decoder }: Stream, bytes: Uint8Array, skipped = 0): readonly NewOutput[] {
  if (bytes.length === 0 && skipped === 0) return [];
  return [{ text: cleanText(decoder.decode(bytes, { stream: true })), bytes, skipped }];
}

/** The first ones stay as long as the node has them. */
function forgetOldest(chunks: Map<number, number>): void {
  chunks.delete(Math.min(...[...chunks.keys()].filter((chunk) => chunk % turn > piecesOfTurn)));
}
