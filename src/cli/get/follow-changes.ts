import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "#api/client.ts";
import { readLines } from "#api/lines.ts";
import { WatchLine } from "#api/schemas.ts";
import type { Cluster } from "../cluster/open-cluster.ts";

interface FollowOptions<Result> {
  /** Beginnings of the registers that matter. */
  readonly registers: readonly string[];
  readonly fetch: (client: ApiClient) => Promise<Result>;
  readonly signal: AbortSignal;
  /** Look again after so long even if nothing was told. */
  readonly everyMs?: number;
}

/** Changes come in bursts: one look for all that is told within this time. */
const burstMs = 100;
const retryMs = { first: 250, longest: 5000 };

/**
 * What `fetch` gives now, and again each time the cluster changed. When the controller is lost, the next one is asked,
 * and so on until one answers; what happened meanwhile is seen then.
 * @throws KcoreError when no controller answers the first time
 */
export async function* followChanges<Result>(cluster: Cluster, options: FollowOptions<Result>): AsyncGenerator<Result> {
  const { signal } = options;
  yield await cluster.ask(options.fetch);
  let wait = retryMs.first;
  for (let turn = 0; !signal.aborted; turn++) {
    const endpoint = cluster.endpoints[turn % cluster.endpoints.length] ?? "";
    const client = cluster.connect(endpoint);
    try {
      for await (const result of followOne(client, options)) {
        wait = retryMs.first;
        yield result;
      }
    } catch (error) {
      if (signal.aborted) return;
      process.stderr.write(`${endpoint}: ${(error as Error).message}; the next controller is asked\n`);
    } finally {
      client.close();
    }
    await sleep(wait, undefined, { signal }).catch(() => undefined);
    wait = Math.min(wait * 2, retryMs.longest);
  }
}

/** Follows one controller until it is lost. */
async function* followOne<Result>(
  client: ApiClient,
  { registers, fetch, signal, everyMs }: FollowOptions<Result>,
): AsyncGenerator<Result> {
  const stream = await client.open("watch", { prefixes: [...registers], changesOnly: true }, { signal });
  const news = new News();
  const reading = (async () => {
    for await (const line of readLines(stream, WatchLine)) if (line.type !== "idle") news.tell();
    throw new Error("the controller ended the watch");
  })();
  reading.catch((error: unknown) => news.end(error));
  const timer = everyMs === undefined ? undefined : setInterval(() => news.tell(), everyMs);
  try {
    while (await news.next()) {
      await sleep(burstMs);
      news.take();
      yield await fetch(client);
    }
  } finally {
    clearInterval(timer);
    stream.destroy();
  }
}

/** Whether something was told since it was last taken. */
class News {
  #told = false;
  #ended: { readonly error: unknown } | undefined;
  #wake: () => void = () => undefined;

  tell(): void {
    this.#told = true;
    this.#wake();
  }

  end(error: unknown): void {
    this.#ended = { error };
    this.#wake();
  }

  take(): void {
    this.#told = false;
  }

  /** Resolves when there is something. @throws what ended it */
  async next(): Promise<true> {
    while (!this.#told) {
      if (this.#ended) throw this.#ended.error;
      await new Promise<void>((resolve) => (this.#wake = resolve));
    }
    return true;
  }
}
