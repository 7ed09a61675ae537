/** The last bytes of a stream, for messages. */
export interface Tail {
  push(chunk: Uint8Array): void;
  bytes(): Buffer;
  /** The bytes as UTF-8, without a character that is cut at the start. */
  text(): string;
}

/** A tail of at most `limit` bytes; holds at most twice as many. */
export function createTail(limit: number): Tail {
  let chunks: Buffer[] = [];
  let bytes = 0;
  let isCut = false;
  const joined = () => {
    const all = Buffer.concat(chunks);
    return all.subarray(Math.max(0, all.length - limit));
  };
  return {
    push(chunk) {
      isCut ||= bytes + chunk.length > limit;
      chunks.push(Buffer.from(chunk.subarray(Math.max(0, chunk.length - limit))));
      bytes += Math.min(chunk.length, limit);
      if (bytes <= 2 * limit) return;
      const last = Buffer.from(joined());
      chunks = [last];
      bytes = last.length;
    },
    bytes: joined,
    text() {
      let last = joined();
      if (isCut) {
        let start = 0;
        // 10xxxxxx continues a character that began before the cut.
        while (start < 3 && ((last[start] ?? 0) & 0xc0) === 0x80) start++;
        last = last.subarray(start);
      }
      return last.toString("utf8");
    },
  };
}
