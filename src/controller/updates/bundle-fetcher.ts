import { setTimeout as sleep } from "node:timers/promises";
import type { BundleId } from "#api/bundle-transfer.ts";
import { openApi, type ApiClient, type Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { describeError, type Log } from "#api/log.ts";
import type { BundleStore } from "./bundles.ts";

export interface BundleFetcherOptions {
  readonly store: Pick<BundleStore, "list" | "put">;
  /** What this controller should have: of updates that the bastion's word was checked of, or a peer could fill the disk. */
  readonly wanted: () => readonly BundleId[];
  /** Where the other controllers are reached, `host:port`. */
  readonly peers: () => readonly string[];
  /** This controller's own. */
  readonly credentials: () => Credentials;
  readonly clock: () => number;
  /** Between 0 and 1: who failed together does not try again together. */
  readonly random: () => number;
  readonly log: Log;
}

export interface BundleFetcher {
  /** Looks now whether something is missing: after a start, when updates changed, when a peer came. */
  readonly look: () => void;
  /** Resolves when nothing is under way any more. */
  readonly stop: () => Promise<void>;
}

/** ms, doubled with each round in which something is still missing. */
const pause = { first: 1_000, longest: 60_000 } as const;
/** So much is gathered before it is put on the disk. */
const pieceBytes = 512 * 1024;

/**
 * Fetches the bundles that this controller should have and has not from the others, one at a time, again and again until it has all of
 * them. Idle it costs nothing: somebody tells it to look.
 */
export function fetchBundles({
  store,
  wanted,
  peers,
  credentials,
  clock,
  random,
  log,
}: BundleFetcherOptions): BundleFetcher {
  const end = new AbortController();
  const { signal } = end;
  /** Ends the pause between two rounds. */
  let hurry = new AbortController();
  let running: Promise<void> | undefined;
  let isAsked = false;

  const fetchFrom = async (endpoint: string, bundle: BundleId, held: number): Promise<number | "whole"> => {
    const client = openApi({ endpoint: parseEndpoint(endpoint), credentials: credentials(), clock, signal });
    try {
      return await take(client, store, bundle, held);
    } finally {
      client.close();
    }
  };

  const fetch = async (bundle: BundleId, held: number): Promise<boolean> => {
    let at = held;
    for (const endpoint of shuffled(peers(), random)) {
      try {
        const now = await fetchFrom(endpoint, bundle, at);
        if (now === "whole") {
          log.info("a bundle came from another controller", { bundle: bundle.sha256, from: endpoint });
          return true;
        }
        at = now;
        log.warn("another controller gave no whole bundle", { bundle: bundle.sha256, from: endpoint, held: at });
      } catch (error) {
        signal.throwIfAborted();
        log.warn("a bundle could not be fetched", { bundle: bundle.sha256, from: endpoint, ...describeError(error) });
      }
    }
    return false;
  };

  /** Whether nothing is missing afterwards. */
  const round = async (): Promise<boolean> => {
    const there = new Map((await store.list()).map((one) => [one.sha256, one]));
    const missing = wanted().filter(({ sha256 }) => there.get(sha256)?.whole !== true);
    let left = 0;
    for (const bundle of missing) if (!(await fetch(bundle, there.get(bundle.sha256)?.held ?? 0))) left++;
    return left === 0;
  };

  const run = async (): Promise<void> => {
    let waitMs: number = pause.first;
    while (!signal.aborted) {
      isAsked = false;
      hurry = new AbortController();
      const isDone = await round().catch((error: unknown) => {
        if (!signal.aborted) log.error("bundles could not be looked through", describeError(error));
        return false;
      });
      if (isAsked) continue;
      if (isDone) return;
      await sleep(waitMs * (0.5 + random() / 2), undefined, {
        signal: AbortSignal.any([signal, hurry.signal]),
        ref: false,
      }).catch(() => undefined);
      waitMs = isAsked ? pause.first : Math.min(waitMs * 2, pause.longest);
    }
  };

  return {
    look() {
      if (signal.aborted) return;
      isAsked = true;
      hurry.abort();
      running ??= run().finally(() => (running = undefined));
    },
    async stop() {
      end.abort();
      await running;
    },
  };
}

/** Puts what a peer gives into the store; gives how much of it is there then. */
async function take(
  client: ApiClient,
  store: Pick<BundleStore, "put">,
  { sha256, size }: BundleId,
  from: number,
): Promise<number | "whole"> {
  const response = await client.open("bundle", {}, { id: `${sha256}@${from}` });
  let offset = from;
  let gathered: Buffer[] = [];
  let bytes = 0;
  const put = async (): Promise<{ readonly held: number; readonly whole: boolean; readonly isNext: boolean }> => {
    const data = Buffer.concat(gathered);
    const answer = await store.put(sha256, { offset, size, data });
    const isNext = answer.held === offset + data.length;
    [gathered, bytes, offset] = [[], 0, answer.held];
    return { ...answer, isNext };
  };
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      gathered.push(chunk);
      bytes += chunk.length;
      if (bytes < pieceBytes) continue;
      const { held, whole, isNext } = await put();
      if (whole) return "whole";
      // Somebody else brings it, too, or it was something else: the next round goes on from there.
      if (!isNext) return held;
    }
    const { held, whole } = await put();
    return whole ? "whole" : held;
  } finally {
    response.destroy();
  }
}

function shuffled<Item>(items: readonly Item[], random: () => number): readonly Item[] {
  return items
    .map((item) => ({ item, by: random() }))
    .toSorted((a, b) => a.by - b.by)
    .map(({ item }) => item);
}
