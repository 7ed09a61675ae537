/** The largest message, bytes: a page has 1 MiB of registers, or one transaction that is larger. */
export const largestLine = 8 * 1024 * 1024;
const deepestNesting = 32;
const newline = 0x0a;

/**
 * Splits a stream of bytes into lines of JSON. It buffers at most `limit` bytes between two calls, and copies a line at most once.
 * @throws Error when a line is too long, no JSON, or nested deeper than 32 levels; then the stream is unusable
 */
export class LineReader {
  readonly #limit: number;
  #parts: Buffer[] = [];
  #size = 0;

  constructor(limit = largestLine) {
    this.#limit = limit;
  }

  /** Calls `take` for each complete line, in order. */
  push(chunk: Buffer, take: (value: unknown) => void): void {
    let from = 0;
    for (let at = chunk.indexOf(newline); at >= 0; at = chunk.indexOf(newline, from)) {
      this.#keep(chunk.subarray(from, at));
      const line = this.#parts.length === 1 ? (this.#parts[0] as Buffer) : Buffer.concat(this.#parts);
      this.#parts = [];
      this.#size = 0;
      from = at + 1;
      take(parseLine(line));
    }
    this.#keep(chunk.subarray(from));
  }

  #keep(part: Buffer): void {
    this.#size += part.length;
    if (this.#size > this.#limit) throw new Error(`a message is longer than ${this.#limit} bytes`);
    if (part.length > 0) this.#parts.push(part);
  }
}

function parseLine(line: Buffer): unknown {
  // JSON.parse itself does not recurse; code that later traverses the value may.
  const value: unknown = JSON.parse(line.toString("utf8"));
  if (isDeeperThan(deepestNesting, value)) throw new Error(`a message is nested deeper than ${deepestNesting} levels`);
  return value;
}

function isDeeperThan(limit: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (limit === 0) return true;
  for (const part of Array.isArray(value) ? (value as unknown[]) : Object.values(value))
    if (typeof part === "object" && part !== null && isDeeperThan(limit - 1, part)) return true;
  return false;
}
