import type { ApiClient } from "#api/client.ts";
import { readLines } from "#api/read-lines.ts";
import { WatchLine } from "#api/controller-schemas.ts";
import { createBackoff } from "#base/backoff.ts";
import { wait } from "#base/wait.ts";
import type { Say } from "../terminal/say.ts";
import type { Cluster } from "./open-cluster.ts";

/** The parts of a cluster that have changed since a reader last took them. */
export class ChangedParts<Part> {
  readonly #parts = new Set<Part>();
  #woken = Promise.withResolvers<void>();

  tell(...parts: readonly Part[]): void {
    for (const part of parts) this.#parts.add(part);
    if (parts.length > 0) this.wake();
  }

  wake(): void {
    this.#woken.resolve();
  }

  /** Waits for changed parts and returns them, each once. @throws the signal's reason, once {@link wake} is called after the signal */
  async take(signal: AbortSignal): Promise<ReadonlySet<Part>> {
    for (;;) {
      signal.throwIfAborted();
      if (this.#parts.size > 0) break;
      await this.#woken.promise;
      this.#woken = Promise.withResolvers();
    }
    const parts = new Set(this.#parts);
    this.#parts.clear();
    return parts;
  }
}

/** The parts of a cluster to follow, and how each is read. */
export interface FollowedParts<Part, Result> {
  readonly news: ChangedParts<Part>;
  /** All parts; each connection begins by reading them. */
  readonly all: readonly Part[];
  /** Prefixes of the registers to watch; none: all registers. */
  readonly registers: readonly string[];
  /** The parts that are out of date after a line of the watch. */
  readonly partsOf: (line: WatchLine) => readonly Part[];
  /** Parts that are read again at an interval, without any news. */
  readonly every: readonly { readonly ms: number; readonly parts: readonly Part[] }[];
  readonly read: (client: ApiClient, parts: ReadonlySet<Part>) => Promise<Result>;
  /** Called when a controller is lost or cannot be reached; `next` is the endpoint to try then. */
  readonly onLost: (endpoint: string, error: Error, next: string) => void;
  /** The endpoint to follow first; by default the first of the cluster. */
  readonly first: string | undefined;
  readonly signal: AbortSignal;
}

/** The first and the longest pause before another controller is asked, in milliseconds; jitter shortens them. */
const retryMs = { base: 250, cap: 5000 };

/**
 * Follows the cluster until the signal: yields a new reading after each change. When a controller is lost, the next one
 * is asked, and so on until one answers.
 */
export async function* follow<Part, Result>(
  { endpoints, clientAt }: Pick<Cluster, "endpoints" | "clientAt">,
  { news, all, registers, partsOf, every, read, onLost, first, signal }: FollowedParts<Part, Result>,
): AsyncGenerator<{ readonly endpoint: string; readonly result: Result }> {
  let turn = Math.max(0, endpoints.indexOf(first ?? ""));
  const current = (): string => endpoints[turn % endpoints.length] ?? first ?? "";
  const backoff = createBackoff({ ...retryMs, random: Math.random });
  for (let waitMs = 0; !signal.aborted; await wait(waitMs, signal).catch(() => undefined)) {
    const endpoint = current();
    const over = new AbortController();
    const stop = AbortSignal.any([signal, over.signal]);
    stop.addEventListener("abort", () => news.wake(), { once: true });
    const timers = every.map(({ ms, parts }) => setInterval(() => news.tell(...parts), ms));
    const listen = async (lines: AsyncIterable<WatchLine>): Promise<never> => {
      for await (const line of lines) news.tell(...partsOf(line));
      throw new Error("the controller ended the watch");
    };
    try {
      const client = clientAt(endpoint);
      const stream = await client.open("watch", { prefixes: [...registers] }, { signal: stop });
      // The watch reports changes alone: everything is read once when it begins.
      news.tell(...all);
      listen(readLines(stream, WatchLine)).catch((error: unknown) => over.abort(error));
      for (;;) {
        const result = await read(client, await news.take(stop));
        waitMs = 0;
        backoff.reset();
        yield { endpoint, result };
      }
    } catch (error) {
      if (signal.aborted) return;
      turn++;
      onLost(endpoint, error as Error, current());
      // Only a round over all controllers makes the pause longer.
      if (waitMs === 0 || turn % endpoints.length === 0) waitMs = backoff.next();
    } finally {
      for (const timer of timers) clearInterval(timer);
      over.abort();
    }
  }
}

export interface FollowChangesOptions<Result> {
  /** Prefixes of the registers that matter. */
  readonly registers: readonly string[];
  readonly fetch: (client: ApiClient) => Promise<Result>;
  readonly signal: AbortSignal;
  /** Gets a message when a controller is lost. */
  readonly say: Say;
  /** Milliseconds after which `fetch` is called again without news. */
  readonly everyMs?: number;
}

/** Milliseconds between two calls of `fetch`, as changes come in bursts. */
const burstMs = 100;

/**
 * The result of `fetch` now, again when each watch begins, and after each change of the cluster.
 * @throws KcoreError when no controller answers the first time
 */
export async function* followChanges<Result>(
  cluster: Cluster,
  { registers, fetch, everyMs, signal, say }: FollowChangesOptions<Result>,
): AsyncGenerator<Result> {
  yield await cluster.ask(fetch);
  const following = follow(cluster, {
    news: new ChangedParts<"all">(),
    all: ["all"],
    registers,
    partsOf: ({ type }) => (type === "idle" ? [] : ["all"]),
    every: everyMs === undefined ? [] : [{ ms: everyMs, parts: ["all"] }],
    read: fetch,
    onLost: (endpoint, { message }) => say(`${endpoint}: ${message}; the next controller is asked`),
    // Begins with the controller that has just answered.
    first: cluster.current(),
    signal,
  });
  for await (const { result } of following) {
    yield result;
    await wait(burstMs, signal).catch(() => undefined);
  }
}
