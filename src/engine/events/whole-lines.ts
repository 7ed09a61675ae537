/** The most bytes of an unfinished line that wait for the line's end. */
const maxBytes = 16_384;
/** Milliseconds after which the next piece of an unfinished line passes the line on. */
const maxWait = 2000;

const [lineFeed, carriageReturn] = [10, 13];
const nothing = Buffer.alloc(0);

/**
 * Joins the pieces of a stream, which are cut at any byte, into whole lines. A line that is too long, or that a program prints dot by dot, is
 * passed on unfinished; a line without further pieces waits for `end`.
 */
export class WholeLines {
  #rest: Buffer = nothing;
  #since = 0;

  /** Adds a piece that came at `now`, in milliseconds, and returns the bytes to pass on now; often none. */
  take(bytes: Uint8Array, now: number): Buffer {
    if (bytes.length === 0) return nothing;
    if (this.#rest.length === 0) this.#since = now;
    const whole = Buffer.concat([this.#rest, bytes]);
    // The carriage return at the very end may have its line feed still to come.
    const end = Math.max(whole.lastIndexOf(lineFeed), whole.subarray(0, -1).lastIndexOf(carriageReturn)) + 1;
    const isLate = end === 0 && now - this.#since >= maxWait;
    const cut = isLate || whole.length - end > maxBytes ? whole.length : end;
    // A copy: a small rest must not keep a large buffer alive.
    this.#rest = Buffer.from(whole.subarray(cut));
    if (cut > 0) this.#since = now;
    return whole.subarray(0, cut);
  }

  /** The rest at the end of the stream. */
  end(): Buffer {
    const rest = this.#rest;
    this.#rest = nothing;
    return rest;
  }
}

/** The last whole lines of a text, at most so many characters; of a longer last line, its last characters. */
export function lastLines(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const start = text.indexOf("\n", text.length - characters - 1) + 1;
  // A line feed that is the last character begins no line.
  return start === 0 || start === text.length ? text.slice(-characters) : text.slice(start);
}
