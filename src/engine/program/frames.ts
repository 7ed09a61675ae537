/** One message from the node: `NONCE TYPE REST`; frames `out` and `raw` carry bytes. */
export interface Frame {
  readonly type: string;
  readonly rest: string;
  readonly bytes?: Uint8Array;
}

/** Types of the follower's own frames; all other frames are lines of the journal and count for the offset. */
const followerTypes = new Set(["hello", "runner", "told", "gone", "fatal", "out", "sudo"]);

/** No journal line is longer: 64 KiB of shown text, escaped, or the keys of some ten thousand steps. */
const longestLine = 256 << 10;
/**
 * Most bytes of one piece of output: a chunk is at most 1 MiB (runner.sh, k_reader), but a quiet step's output is one
 * piece.
 */
const longestOutput = 16 << 20;
/** Bytes of output that are collected before they are passed on. */
const portionLimit = 64 << 10;
/** Characters of noise beside frames that are kept. */
const noiseLimit = 8192;

interface Pending {
  readonly id: string;
  readonly offset: number;
  readonly lost: string;
  /** Bytes still to come, without the line break after them. */
  left: number;
  /** Bytes passed on. */
  passed: number;
}

/**
 * Cuts the node's stdout into frames. Output of login shells, banners or broken programs beside them is noise: its last
 * 8 KiB are kept for messages and never interpreted (requirements F-12, S-4). A killed step can tear a frame; that
 * frame is skipped, because the next begins with the nonce anywhere in the line. A long piece of output comes as
 * several frames, each with its own offset and length.
 */
export class FrameReader {
  /** The beginning of every frame. */
  readonly #mark: string;
  /** The beginning of a line, or of a portion of output. */
  readonly #rest = new ByteBuffer();
  #pending: Pending | undefined;
  #noise = "";
  /** Bytes of journal lines read so far: the offset for a next attach. */
  offset: number;

  /** Whether the node may send a frame `raw`: all bytes after that frame come as frames `raw`. */
  readonly #mayBeRaw: boolean;
  #isRaw = false;

  constructor(nonce: string, offset = 0, mayBeRaw = false) {
    this.#mark = `${nonce} `;
    this.offset = offset;
    this.#mayBeRaw = mayBeRaw;
  }

  /** Adds bytes and yields the frames that they complete. @throws RangeError for a line or a piece of output beyond the limits */
  *push(bytes: Uint8Array): Generator<Frame> {
    const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    for (let at = 0; at < chunk.length;) {
      if (this.#isRaw) {
        yield { type: "raw", rest: "", bytes: chunk.subarray(at) };
        return;
      }
      if (this.#pending) {
        at += yield* this.#takeOutput(this.#pending, chunk.subarray(at));
        continue;
      }
      const end = chunk.indexOf(10, at);
      const part = chunk.subarray(at, end < 0 ? chunk.length : end);
      if (this.#rest.length + part.length > longestLine)
        throw new RangeError(`a line longer than ${longestLine >> 10} KiB`);
      if (end < 0) return this.#rest.append(part);
      const length = this.#rest.length + part.length;
      const line = this.#rest.length === 0 ? part : this.#rest.takeWith(part);
      at = end + 1;
      const frame = this.#read(line, length + 1);
      if (frame) yield frame;
    }
  }

  /** Takes output, and the line break after it; returns the number of bytes taken. */
  *#takeOutput(pending: Pending, chunk: Buffer): Generator<Frame, number> {
    if (pending.left === 0) {
      this.#pending = undefined;
      return 1;
    }
    const part = chunk.subarray(0, Math.min(pending.left, portionLimit - this.#rest.length));
    pending.left -= part.length;
    if (pending.left > 0 && this.#rest.length + part.length < portionLimit) {
      this.#rest.append(part);
      return part.length;
    }
    const bytes = this.#rest.length === 0 ? part : this.#rest.takeWith(part);
    yield outputFrame(pending, bytes);
    pending.passed += bytes.length;
    return part.length;
  }

  #read(line: Buffer, length: number): Frame | undefined {
    // A substring would keep the text before the nonce in memory, as long as the frame lives.
    const at = line.lastIndexOf(this.#mark);
    const text = at < 0 ? "" : line.toString("utf8", at + this.#mark.length);
    const space = text.indexOf(" ");
    const [type, rest] = space < 0 ? [text, ""] : [text.slice(0, space), text.slice(space + 1)];
    if (type === "") {
      this.#noise += `${line.toString("utf8", Math.max(0, line.length - noiseLimit))}\n`;
      if (this.#noise.length > 8 * noiseLimit) this.#noise = this.noise;
      return undefined;
    }
    this.#isRaw = this.#mayBeRaw && type === "raw";
    if (!followerTypes.has(type)) this.offset += length;
    return type === "out" ? this.#announced(rest) : { type, rest };
  }

  #announced(rest: string): Frame | undefined {
    const [id = "", offset, bytes, lost = ""] = rest.split(" ", 4);
    const left = countOf(bytes);
    if (left > longestOutput) throw new RangeError("more output than any runner sends at once");
    this.#pending = { id, offset: countOf(offset), lost, left, passed: 0 };
    return left === 0 ? outputFrame(this.#pending, new Uint8Array()) : undefined;
  }

  /** The end of the noise beside frames. */
  get noise(): string {
    return this.#noise.slice(-noiseLimit);
  }

  /** The last incomplete line, which a prompt without a line break would be. */
  get tail(): string {
    return this.#rest.last(4096).toString("utf8");
  }
}

function outputFrame({ id, offset, lost, passed }: Pending, bytes: Uint8Array): Frame {
  return { type: "out", rest: `${id} ${offset + passed} ${bytes.length} ${lost}`, bytes };
}

/** A number of bytes as sh writes it; 0 for anything else. */
function countOf(word = ""): number {
  return /^\d{1,15}$/.test(word) ? Number(word) : 0;
}

const smallestBuffer = 4096;

/** Collects bytes from pieces of any size; each byte is copied a few times at most. */
class ByteBuffer {
  #bytes = Buffer.alloc(0);
  length = 0;

  append(part: Uint8Array): void {
    const length = this.length + part.length;
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(smallestBuffer, length, 2 * this.#bytes.length));
      this.#bytes.copy(grown, 0, 0, this.length);
      this.#bytes = grown;
    }
    this.#bytes.set(part, this.length);
    this.length = length;
  }

  /** All collected bytes, followed by `part`, which stays the caller's. Keeps nothing. */
  takeWith(part: Uint8Array): Buffer {
    this.append(part);
    const taken = this.#bytes.subarray(0, this.length);
    this.#bytes = Buffer.alloc(0);
    this.length = 0;
    return taken;
  }

  /** The last `count` bytes at most. */
  last(count: number): Buffer {
    return this.#bytes.subarray(Math.max(0, this.length - count), this.length);
  }
}

/** One line for any text: back slash and line break escaped, the form in which values travel in frames. */
export function escapeLine(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

/** The inverse of {@link escapeLine}; a foreign escape stays as it is. */
export function unescapeLine(line: string): string {
  return line.replace(/\\(\\|n)/g, (_, what: string) => (what === "n" ? "\n" : "\\"));
}
