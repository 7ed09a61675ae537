import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "#api/client.ts";
import { readLines } from "#api/read-lines.ts";
import { WatchLine } from "#api/schemas.ts";

/** What was told to have changed since it was last taken. */
export class News<Part> {
  #parts = new Set<Part>();
  #ended: { readonly error: unknown } | undefined;
  #wake: () => void = () => undefined;

  /** Another controller tells from now on. */
  begin(): void {
    this.#ended = undefined;
  }

  tell(...parts: readonly Part[]): void {
    for (const part of parts) this.#parts.add(part);
    if (parts.length > 0) this.#wake();
  }

  end(error: unknown): void {
    this.#ended = { error };
    this.#wake();
  }

  /** Resolves when there is something. @throws what ended it, the signal's reason */
  async some(signal: AbortSignal): Promise<void> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#ended) throw this.#ended.error;
      if (this.#parts.size > 0) return;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        signal.addEventListener("abort", () => resolve(), { once: true });
      });
    }
  }

  take(): ReadonlySet<Part> {
    const parts = this.#parts;
    this.#parts = new Set();
    return parts;
  }
}

export interface FollowedWatch<Part> {
  readonly news: News<Part>;
  /** Beginnings of the registers that matter; none: all do. */
  readonly registers: readonly string[];
  /** What a line makes old. */
  readonly partsOf: (line: WatchLine) => readonly Part[];
  /** What is looked at again after so long even if nothing was told. */
  readonly every: readonly { readonly ms: number; readonly parts: readonly Part[] }[];
  /** Changes come in bursts: what is told within this time is given at once. */
  readonly burstMs?: number;
  readonly signal: AbortSignal;
}

/** Follows one controller until it is lost: gives what has changed, each time something has. */
export async function* followWatch<Part>(
  client: ApiClient,
  { news, registers, partsOf, every, burstMs = 0, signal }: FollowedWatch<Part>,
): AsyncGenerator<ReadonlySet<Part>> {
  const over = new AbortController();
  const stop = AbortSignal.any([signal, over.signal]);
  // What stands is read anyway; the watch tells when to read it again.
  const stream = await client.open("watch", { prefixes: [...registers], changesOnly: true }, { signal: stop });
  news.begin();
  const reading = (async () => {
    for await (const line of readLines(stream, WatchLine)) news.tell(...partsOf(line));
    throw new Error("the controller ended the watch");
  })();
  reading.catch((error: unknown) => news.end(error));
  const timers = every.map(({ ms, parts }) => setInterval(() => news.tell(...parts), ms));
  try {
    for (;;) {
      await news.some(stop);
      if (burstMs > 0) await sleep(burstMs);
      yield news.take();
    }
  } finally {
    for (const timer of timers) clearInterval(timer);
    over.abort();
  }
}
