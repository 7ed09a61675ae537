/** A queue of bytes between a stream and one reader, with a soft limit at which the stream must pause. */
export interface ChunkQueue extends AsyncIterable<Uint8Array> {
  /** False when the limit is reached: pause the source until `onRoom` was called. A chunk after the end is dropped. */
  push(chunk: Uint8Array): boolean;
  /** No further chunk comes; queued chunks are still read. */
  end(): void;
  /** Ends at once and drops unread chunks. */
  discard(): void;
  /** Resolves when `end` was called and every chunk was read, or after `discard`. */
  readonly drained: Promise<void>;
}

/** A queue that asks its source to pause at `limit` bytes and to go on at half of them. One reader at a time. */
export function createChunkQueue(limit: number, onRoom: () => void): ChunkQueue {
  let chunks: Uint8Array[] = [];
  let bytes = 0;
  let full = false;
  let ended = false;
  let wake: (() => void) | undefined;
  const { promise: drained, resolve: resolveDrained } = Promise.withResolvers<void>();

  const notify = () => {
    if (ended && chunks.length === 0) resolveDrained();
    wake?.();
    wake = undefined;
  };
  const take = (): Uint8Array | undefined => {
    const chunk = chunks.shift();
    if (chunk === undefined) return undefined;
    bytes -= chunk.length;
    if (full && bytes <= limit / 2) {
      full = false;
      onRoom();
    }
    return chunk;
  };

  return {
    drained,
    push(chunk) {
      if (ended) return true;
      chunks.push(chunk);
      bytes += chunk.length;
      if (bytes >= limit) full = true;
      notify();
      return !full;
    },
    end() {
      ended = true;
      notify();
    },
    discard() {
      chunks = [];
      bytes = 0;
      ended = true;
      notify();
    },
    async *[Symbol.asyncIterator]() {
      for (;;) {
        const chunk = take();
        if (chunk !== undefined) yield chunk;
        else if (ended) break;
        else await new Promise<void>((resolve) => (wake = resolve));
        // The reader is through with the yielded chunk: only now may `drained` resolve.
        notify();
      }
    },
  };
}
