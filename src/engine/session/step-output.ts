import { cleanText } from "#engine/events/clean.ts";

/** Chunks of a stream that a node still has (runner.sh, k_reader: the first and the last ones), and a few more. */
const keptChunks = 8;

interface Stream {
  /** Bytes received, by number of the chunk. */
  readonly chunks: Map<number, number>;
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

/** What was received of the steps' output, so that no byte is told twice. */
export class StepOutput {
  /** By `KEY.STREAM`. */
  readonly #streams = new Map<string, Stream>();

  /** For an attach: `KEY.STREAM.CHUNK:BYTES …`. */
  get seen(): string {
    const streams = [...this.#streams].flatMap(([id, { chunks }]) =>
      [...chunks].map(([chunk, bytes]) => `${id}.${chunk}:${bytes}`),
    );
    return streams.join(" ");
  }

  /** Takes a piece, `OFFSET BYTES LOST` and the bytes themselves; undefined when nothing of it is new. */
  take(
    id: string,
    chunk: number,
    [offset = "0", , lost = "0"]: readonly string[],
    bytes: Uint8Array,
  ): NewOutput | undefined {
    let stream = this.#streams.get(id);
    if (!stream) this.#streams.set(id, (stream = { chunks: new Map(), decoder: new TextDecoder("utf-8"), lost: 0 }));
    const known = stream.chunks.get(chunk) ?? 0;
    const fresh = bytes.subarray(Math.max(0, known - Number(offset)));
    stream.chunks.set(chunk, Math.max(known, Number(offset) + bytes.length));
    if (stream.chunks.size > keptChunks) forgetOldest(stream.chunks);
    const skipped = Number(lost) - stream.lost;
    stream.lost = Number(lost);
    if (fresh.length === 0) return undefined;
    return { text: cleanText(stream.decoder.decode(fresh, { stream: true })), bytes: fresh, skipped };
  }

  /** The step is over, or another attempt's output begins from its first byte again. */
  forget(key: string): void {
    for (const stream of ["o", "e"]) this.#streams.delete(`${key}.${stream}`);
  }
}

/** The first chunk stays as long as the node has it. */
function forgetOldest(chunks: Map<number, number>): void {
  chunks.delete(Math.min(...[...chunks.keys()].filter((chunk) => chunk > 0)));
}
