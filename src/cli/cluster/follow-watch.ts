import type { ApiClient } from "#api/client.ts";
import { readLines } from "#api/read-lines.ts";
import { WatchLine } from "#api/schemas.ts";
import { wait } from "#base/wait.ts";
import type { Cluster } from "./open-cluster.ts";

/** What was told to have changed since it was last taken. */
export class News<Part> {
  #parts = new Set<Part>();
  #ended: { readonly error: unknown } | undefined;
  #wake: () => void = () => undefined;

  /** From now on another controller is followed. */
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

export interface Following<Part, Result> extends FollowedWatch<Part> {
  /** The endpoint that is followed first. */
  readonly first: string | undefined;
  /** Reads what has changed. */
  readonly read: (client: ApiClient, parts: ReadonlySet<Part>) => Promise<Result>;
  /** Told when a controller is lost, and which one is asked next. */
  readonly onLost: (endpoint: string, error: Error, next: string) => void;
}

/** Milliseconds until another controller is asked. */
const retryMs = { first: 250, longest: 5000 };

/**
 * Follows the cluster until the signal: gives what was read each time something has changed. When a controller is lost, the next one is
 * asked, and so on until one answers.
 */
export async function* follow<Part, Result>(
  { endpoints, clientAt }: Pick<Cluster, "endpoints" | "clientAt">,
  { first, read, onLost, ...watch }: Following<Part, Result>,
): AsyncGenerator<{ readonly endpoint: string; readonly result: Result }> {
  const { signal } = watch;
  let turn = Math.max(0, endpoints.indexOf(first ?? ""));
  const current = (): string => endpoints[turn % endpoints.length] ?? first ?? "";
  for (let waitMs = 0; !signal.aborted;) {
    const endpoint = current();
    try {
      const client = clientAt(endpoint);
      for await (const parts of followWatch(client, watch)) {
        const result = await read(client, parts);
        waitMs = 0;
        yield { endpoint, result };
      }
    } catch (error) {
      if (signal.aborted) return;
      turn++;
      onLost(endpoint, error as Error, current());
      // The others are asked one after the other; only a round over all of them makes the pause longer.
      if (waitMs === 0 || turn % endpoints.length === 0)
        waitMs = Math.min(Math.max(retryMs.first, waitMs * 2), retryMs.longest);
      await wait(waitMs, signal).catch(() => undefined);
    }
  }
}

/** Follows one controller until it is lost: gives what has changed, each time something has. */
async function* followWatch<Part>(
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
      if (burstMs > 0) await wait(burstMs);
      yield news.take();
    }
  } finally {
    for (const timer of timers) clearInterval(timer);
    over.abort();
  }
}
