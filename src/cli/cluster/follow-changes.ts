import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "#api/client.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Cluster } from "../open-cluster.ts";

interface FollowOptions<Result> {
  /** Beginnings of the registers that matter. */
  readonly registers: readonly string[];
  readonly fetch: (client: ApiClient) => Promise<Result>;
  readonly signal: AbortSignal;
  /** Fetch again after so long even if nothing was told. */
  readonly everyMs?: number;
}

/** Changes come in bursts: one look for all that is told within this time. */
const burstMs = 2000;
const retryMs = { first: 500, longest: 5000 };

/**
 * What `fetch` gives now, and again each time the cluster changed. When the controller is lost, the next one is asked,
 * and so on until one answers; what happened meanwhile is seen then.
 * @throws KcoreError when no controller answers the first time
 */
export async function* followChanges<Result>(
  { ask, endpoints, askAt }: Cluster,
  { registers, fetch, signal, everyMs }: FollowOptions<Result>,
): AsyncGenerator<Result> {
  void registers;
  void endpoints;
  void askAt;
  yield await ask(fetch);
  for (let wait = retryMs.first; !signal.aborted;) {
    await sleep(everyMs ?? burstMs, undefined, { signal });
    try {
      yield await ask(fetch);
      wait = retryMs.first;
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      await sleep(wait, undefined, { signal });
      wait = Math.min(wait * 2, retryMs.longest);
    }
  }
}
