/** One message from the node: `NONCE TYPE REST`; `out` frames carry bytes. */
export interface Frame {
  readonly type: string;
  readonly rest: string;
  readonly bytes?: Uint8Array;
}

/** Frames that the follower itself says; all others are lines of the journal and count for the offset. */
const saidByFollower = new Set(["hello", "runner", "told", "gone", "fatal", "out", "sudo"]);

/** No journal line is longer: 64 KiB of shown text, escaped, and a little. */
const longestLine = 1 << 20;
/** A piece of output is a chunk of 1 MiB at most (runner.sh, k_reader), or what a quiet step said in all. */
const longestOutput = 16 << 20;

/**
 * Cuts the node's stdout into frames. Whatever a login shell, a banner or a broken program prints beside them is noise:
 * kept (the last 8 KiB) for messages, never interpreted (requirement F-12, S-4). A frame torn by a killed step is
 * skipped: the next one begins with the nonce wherever it stands in the line.
 */
export class FrameReader {
  readonly #nonce: string;
  #rest: Buffer = Buffer.alloc(0);
  #pending: { frame: Frame; length: number } | undefined;
  /** Bytes of journal lines read so far: where an attach would go on. */
  offset: number;
  noise = "";

  constructor(nonce: string, offset = 0) {
    this.#nonce = nonce;
    this.offset = offset;
  }

  /** Takes what arrived, gives the frames that it completes. @throws RangeError for a line or output beyond all measure. */
  *push(chunk: Uint8Array): Generator<Frame> {
    this.#rest = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk]);
    for (;;) {
      if (this.#pending) {
        const { frame, length } = this.#pending;
        if (this.#rest.length < length + 1) return;
        const bytes = this.#rest.subarray(0, length);
        this.#rest = this.#rest.subarray(length + 1);
        this.#pending = undefined;
        yield { ...frame, bytes };
        continue;
      }
      const end = this.#rest.indexOf(10);
      if (end < 0) {
        if (this.#rest.length > longestLine) throw new RangeError("the node sent a line longer than 1 MiB");
        return;
      }
      const line = this.#rest.subarray(0, end).toString("utf8");
      this.#rest = this.#rest.subarray(end + 1);
      const frame = this.#read(line, end + 1);
      if (frame) yield frame;
    }
  }

  #read(line: string, length: number): Frame | undefined {
    const at = line.lastIndexOf(`${this.#nonce} `);
    const [type = "", ...words] = at < 0 ? [] : line.slice(at + this.#nonce.length + 1).split(" ");
    if (at < 0 || type === "") {
      this.noise = `${this.noise}${line}\n`.slice(-8192);
      return undefined;
    }
    if (!saidByFollower.has(type)) this.offset += length;
    const frame: Frame = { type, rest: words.join(" ") };
    if (type !== "out") return frame;
    const bytes = Math.max(0, Number(words[2])) || 0;
    if (bytes > longestOutput) throw new RangeError("the node announced more output than any runner sends at once");
    this.#pending = { frame, length: bytes };
    return undefined;
  }

  /** The last incomplete line: where a prompt without a line break stands. */
  get tail(): string {
    return this.#rest.subarray(-4096).toString("utf8");
  }
}
