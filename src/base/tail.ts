/** The last bytes of a stream, for messages. */
export interface Tail {
  push(chunk: Uint8Array): void;
  bytes(): Buffer;
  /** As UTF-8; a character cut at the start is dropped. */
  text(): string;
}

/** A tail of at most `limit` bytes; holds at most twice as many. */
export function createTail(limit: number): Tail {
  let kept: Buffer[] = [];
  let bytes = 0;
  const joined = () => {
    const all = Buffer.concat(kept);
    return all.subarray(Math.max(0, all.length - limit));
  };
  return {
    push(chunk) {
      kept.push(Buffer.from(chunk.subarray(Math.max(0, chunk.length - limit))));
      bytes += Math.min(chunk.length, limit);
      if (bytes <= 2 * limit) return;
      const last = Buffer.from(joined());
      kept = [last];
      bytes = last.length;
    },
    bytes: joined,
    text() {
      let last = joined();
      if (bytes > limit) {
        let start = 0;
        // 10xxxxxx continues a character that began before the cut.
        while (start < 3 && ((last[start] ?? 0) & 0xc0) === 0x80) start++;
        last = last.subarray(start);
      }
      return last.toString("utf8");
    },
  };
}
