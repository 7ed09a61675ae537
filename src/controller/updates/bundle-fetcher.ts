import { longestTransferMs, type BundleId } from "#api/bundle-transfer.ts";
import { openApi, type ApiClient, type Credentials } from "#api/client.ts";
import { parseEndpoint } from "#api/endpoint.ts";
import { describeError, type Log } from "#api/log.ts";
import { createBackoff } from "#base/backoff.ts";
import { wait } from "#base/wait.ts";
import type { Bundle } from "#rollout/spec.ts";
import type { BundleStore, BundleState } from "./bundles.ts";
import type { Verify } from "./signed-statements.ts";
import { isSettled, type UpdateIndex } from "./update-records.ts";

export interface BundleFetcherOptions {
  readonly store: Pick<BundleStore, "list" | "put">;
  /** The bundles that this controller should have: only bundles of signed updates, or a peer could fill the disk. */
  readonly wanted: () => readonly BundleId[];
  /** The addresses of the other controllers, `host:port`. */
  readonly peers: () => readonly string[];
  /** This controller's own credentials. */
  readonly credentials: () => Credentials;
  readonly clock: () => number;
  /** Uniform in [0, 1), so that controllers that failed together do not retry together. */
  readonly random: () => number;
  readonly log: Log;
}

/** The bytes that are gathered before each write to the disk. */
const pieceBytes = 512 * 1024;

export type BundleFetcher = ReturnType<typeof openBundleFetcher>;

/** Fetches missing bundles from other controllers, one at a time, until none is missing; no timer runs while none is. */
export function openBundleFetcher(options: BundleFetcherOptions) {
  const { store, wanted, random, log } = options;
  const end = new AbortController();
  const { signal } = end;
  const backoff = createBackoff({ base: 1_000, cap: 60_000, random });
  /** Ends the pause between two rounds. */
  let hurry = new AbortController();
  let running: Promise<void> | undefined;
  /** The bundles that the last round wanted. */
  let known: ReadonlySet<string> = new Set();
  const hasNewBundle = (): boolean => wanted().some(({ sha256 }) => !known.has(sha256));

  /** Tries to fetch all missing bundles; returns whether none is missing afterwards. */
  const round = async (): Promise<boolean> => {
    const all = wanted();
    known = new Set(all.map(({ sha256 }) => sha256));
    const stored = new Map((await store.list()).map((one) => [one.sha256, one]));
    let isDone = true;
    for (const bundle of all) {
      const isStored = stored.get(bundle.sha256)?.whole === true;
      isDone = (isStored || (await fetchFromAny(bundle, options, signal))) && isDone;
    }
    return isDone;
  };

  const run = async (): Promise<void> => {
    backoff.reset();
    while (!signal.aborted) {
      hurry = new AbortController();
      const isDone = await round().catch((error: unknown) => {
        if (!signal.aborted) log.error("bundles could not be looked through", describeError(error));
        return false;
      });
      if (!hasNewBundle() && isDone) return;
      if (!hasNewBundle()) await wait(backoff.next(), AbortSignal.any([signal, hurry.signal])).catch(() => undefined);
      if (hasNewBundle()) backoff.reset();
    }
  };

  return {
    /** Starts to fetch missing bundles; to be called after a start, and when the wanted ones may have changed. */
    fetchMissing(): void {
      if (signal.aborted) return;
      if (hasNewBundle()) hurry.abort();
      running ??= run().finally(() => (running = undefined));
    },
    /** Aborts the transfers; resolves when none is under way. */
    async stop(): Promise<void> {
      end.abort();
      await running;
    },
  };
}

/** Fetches a bundle from the peers in random order, each from the offset where the one before ended. Returns whether the bundle is complete. */
async function fetchFromAny(
  bundle: BundleId,
  { store, peers, credentials, clock, random, log }: BundleFetcherOptions,
  stop: AbortSignal,
): Promise<boolean> {
  for (const endpoint of shuffled(peers(), random)) {
    // With a time limit: a peer that sends a byte now and then must not block the others.
    const signal = AbortSignal.any([stop, AbortSignal.timeout(longestTransferMs(bundle.size))]);
    const client = openApi({ endpoint: parseEndpoint(endpoint), credentials: credentials(), clock, signal });
    const fields = { bundle: bundle.sha256, from: endpoint };
    try {
      const part = (await store.list()).find(({ sha256 }) => sha256 === bundle.sha256);
      const { held, whole } = await receive(client, store, bundle, part?.held ?? 0);
      if (whole) log.info("a bundle came from another controller", fields);
      else log.warn("another controller gave no whole bundle", { ...fields, held });
      if (whole) return true;
    } catch (error) {
      stop.throwIfAborted();
      log.warn("a bundle could not be fetched", { ...fields, ...describeError(error) });
    } finally {
      client.close();
    }
  }
  return false;
}

/** Writes a peer's bytes from offset `from` on into the store; returns the store's bytes of the bundle then. */
async function receive(
  client: ApiClient,
  store: Pick<BundleStore, "put">,
  { sha256, size }: BundleId,
  from: number,
): Promise<BundleState> {
  const response = await client.open("bundle", {}, { id: `${sha256}@${from}` });
  let offset = from;
  let gathered: Buffer[] = [];
  let bytes = 0;
  const put = async (): Promise<BundleState> => {
    const data = Buffer.concat(gathered);
    gathered = [];
    bytes = 0;
    return store.put(sha256, { offset, size, data });
  };
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      gathered.push(chunk);
      bytes += chunk.length;
      if (bytes < pieceBytes) continue;
      const next = offset + bytes;
      const answer = await put();
      // Another client also uploads the bundle, or the part was wrong: the next request continues at the store's offset.
      if (answer.whole || answer.held !== next) return answer;
      offset = next;
    }
    return await put();
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

/** Whether nodes may still fetch the bundle: an update that is not settled brings it. */
export function isBundleNeeded(index: Pick<UpdateIndex, "all">, sha256: string): boolean {
  return [...index.all()].some((update) => update.statement.bundle?.sha256 === sha256 && !isSettled(update));
}

/** The bundles that this controller should have: the bundles of signed updates that are not settled. */
export function wantedBundles({
  index,
  verify,
}: {
  readonly index: Pick<UpdateIndex, "all">;
  readonly verify: Verify;
}): readonly Bundle[] {
  return [...index.all()].flatMap((update) => {
    const { head, statement } = update;
    if (!statement.bundle || isSettled(update)) return [];
    try {
      verify(head.value.signed, Date.parse(statement.signedAt));
      return [statement.bundle];
    } catch {
      return [];
    }
  });
}
