/** Bytes of a line that has not ended which are kept waiting for its end, and milliseconds. */
const most = 16_384;
const patience = 2000;

const [lineFeed, carriageReturn] = [10, 13];
const nothing = Buffer.alloc(0);

/**
 * Puts a stream's pieces together to whole lines, as they are cut anywhere on their way. A line does not wait for ever:
 * a line that is too long, or that a program prints dot by dot, goes on as it is.
 */
export class WholeLines {
  #rest: Buffer = nothing;
  #since = 0;

  /** The bytes to tell now that this piece came, `now` in milliseconds; often none. */
  take(bytes: Uint8Array, now: number): Buffer {
    if (bytes.length === 0) return nothing;
    if (this.#rest.length === 0) this.#since = now;
    const whole = Buffer.concat([this.#rest, bytes]);
    // The carriage return at the very end may have its line feed still to come.
    const end = Math.max(whole.lastIndexOf(lineFeed), whole.subarray(0, -1).lastIndexOf(carriageReturn)) + 1;
    const isLate = end === 0 && now - this.#since >= patience;
    const cut = isLate || whole.length - end > most ? whole.length : end;
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

/** The end of a text, at most so many characters, from the beginning of a line on; the end of a line that is longer itself. */
export function lastLines(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const start = text.indexOf("\n", text.length - characters - 1) + 1;
  // A line end that is the last character begins nothing.
  return start === 0 || start === text.length ? text.slice(-characters) : text.slice(start);
}
