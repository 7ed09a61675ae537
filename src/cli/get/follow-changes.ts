import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "#api/client.ts";
import type { WatchLine } from "#api/schemas.ts";
import { followWatch, News } from "../cluster/follow-watch.ts";
import type { Cluster } from "../cluster/open-cluster.ts";
import type { Say } from "../terminal/say.ts";

interface FollowOptions<Result> {
  /** Beginnings of the registers that matter. */
  readonly registers: readonly string[];
  readonly fetch: (client: ApiClient) => Promise<Result>;
  readonly signal: AbortSignal;
  /** Told when a controller is lost: what is drawn at a terminal must know of each line. */
  readonly say: Say;
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
  const { registers, everyMs, signal, say } = options;
  const news = new News<"changes">();
  const every = everyMs === undefined ? [] : [{ ms: everyMs, parts: ["changes"] as const }];
  yield await cluster.ask(options.fetch);
  let wait = retryMs.first;
  // The one that has just answered is asked on.
  const first = Math.max(0, cluster.endpoints.indexOf(cluster.current() ?? ""));
  for (let turn = first; !signal.aborted; turn++) {
    const endpoint = cluster.endpoints[turn % cluster.endpoints.length] ?? "";
    try {
      const client = cluster.clientAt(endpoint);
      for await (const _ of followWatch(client, { news, registers, partsOf, every, burstMs, signal })) {
        const result = await options.fetch(client);
        wait = retryMs.first;
        yield result;
      }
    } catch (error) {
      if (signal.aborted) return;
      say(`${endpoint}: ${(error as Error).message}; the next controller is asked`);
    }
    await sleep(wait, undefined, { signal }).catch(() => undefined);
    wait = Math.min(wait * 2, retryMs.longest);
  }
}

function partsOf({ type }: WatchLine): readonly "changes"[] {
  return type === "idle" ? [] : ["changes"];
}
