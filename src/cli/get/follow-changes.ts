import type { ApiClient } from "#api/client.ts";
import type { WatchLine } from "#api/schemas.ts";
import { follow, News } from "../cluster/follow-watch.ts";
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

/**
 * What `fetch` gives now, and again each time the cluster changed. When the controller is lost, the next one is asked,
 * and so on until one answers; what happened meanwhile is seen then.
 * @throws KcoreError when no controller answers the first time
 */
export async function* followChanges<Result>(cluster: Cluster, options: FollowOptions<Result>): AsyncGenerator<Result> {
  const { registers, fetch, everyMs, signal, say } = options;
  const every = everyMs === undefined ? [] : [{ ms: everyMs, parts: ["changes"] as const }];
  yield await cluster.ask(fetch);
  const watch = { news: new News<"changes">(), registers, partsOf, every, burstMs, signal };
  const onLost = (endpoint: string, { message }: Error): void =>
    say(`${endpoint}: ${message}; the next controller is asked`);
  // The controller that has just answered is asked on.
  for await (const { result } of follow(cluster, { ...watch, first: cluster.current(), read: fetch, onLost }))
    yield result;
}

function partsOf({ type }: WatchLine): readonly "changes"[] {
  return type === "idle" ? [] : ["changes"];
}
