import { mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { ifThere, hashFile } from "#base/file.ts";
import type { FetchRequest } from "#engine/step/blob.ts";
import type { Fetch, RemoteContent } from "#engine/step/remote.ts";
import { fetchFile, type FetchLimits, usualLimits } from "./fetch-file.ts";

export interface DownloadOptions {
  /** Where contents are kept, by their hash. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limits?: FetchLimits;
}

type Progress = Parameters<FetchRequest["onProgress"]>[0];

/** Minimum milliseconds between two reports of progress. */
const reportEvery = 5_000;

/** Milliseconds after which the next fetch removes an unused content. */
const keptFor = 30 * 86_400_000;
/** Milliseconds after which the next fetch removes the temporary file of a killed process. */
const temporaryFor = 86_400_000;

/**
 * Fetches a content once for all nodes that ask for it by the same URL, and keeps the content by its hash. A node asks only for
 * a content that the node lacks, so a dry run and a node in order cost no request.
 */
export function openDownloads({ folder, env, limits = usualLimits }: DownloadOptions): Fetch {
  const running = new Map<string, SharedFetch>();
  /** Hashes of the contents that this process has fetched or verified. */
  const verified = new Set<string>();

  async function fetchUnlessKept(
    content: RemoteContent,
    signal: AbortSignal,
    onProgress: FetchRequest["onProgress"],
  ): Promise<void> {
    const file = join(folder, content.sha256);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!(await touchIfKept(file, content.sha256, signal))) {
      onProgress({ got: 0 });
      await forgetOld(folder);
      await fetchFile(content, file, { env, limits, signal, onProgress });
    }
    verified.add(content.sha256);
  }

  return async (content, request) => {
    request.signal.throwIfAborted();
    const { sha256 } = content;
    const file = join(folder, sha256);
    const known = verified.has(sha256) ? await stat(file).catch(() => undefined) : undefined;
    if (known) return { file, sha256, size: known.size };
    // A fetch from one URL may fail where another URL gives the same content.
    const key = `${sha256} ${String(content.url)}`;
    let shared = running.get(key);
    if (!shared || shared.isAbandoned) {
      const begun = new SharedFetch((signal, onProgress) => fetchUnlessKept(content, signal, onProgress));
      running.set(key, (shared = begun));
      const forget = (): boolean => running.get(key) === begun && running.delete(key);
      begun.ended.then(forget, forget);
    }
    await shared.join(request);
    return { file, sha256, size: (await stat(file)).size };
  };
}

/** Marks the file as used, if it is there and has the hash of its name; returns whether that is so. */
async function touchIfKept(file: string, sha256: string, signal: AbortSignal): Promise<boolean> {
  if ((await ifThere(hashFile(file, signal))) !== sha256) return false;
  const now = new Date();
  await utimes(file, now, now);
  return true;
}

async function forgetOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const file = join(folder, name);
    const found = await stat(file).catch(() => undefined);
    const limit = name.endsWith(".tmp") ? temporaryFor : keptFor;
    if (found && Date.now() - found.mtimeMs > limit) await rm(file, { force: true });
  }
}

/** One fetch, shared by all requests that arrive while it runs. The fetch is aborted when the last request is withdrawn. */
class SharedFetch {
  /** Settles when the fetch has succeeded or failed. */
  readonly ended: Promise<void>;
  readonly #requests = new Set<FetchRequest>();
  readonly #end = new AbortController();
  readonly #began = Date.now();
  #last: Progress | undefined;
  #reportedAt = 0;

  constructor(work: (signal: AbortSignal, onProgress: FetchRequest["onProgress"]) => Promise<void>) {
    this.ended = work(this.#end.signal, (progress) => this.#report(progress));
  }

  /** Whether no request waits for the fetch any more: then an unfinished fetch is aborted. */
  get isAbandoned(): boolean {
    return this.#end.signal.aborted;
  }

  /** Resolves when the content is complete; rejects when the fetch fails or the request is withdrawn. */
  async join(request: FetchRequest): Promise<void> {
    const { signal } = request;
    const { promise: withdrawn, reject } = Promise.withResolvers<never>();
    const withdraw = (): void => reject(signal.reason as Error);
    signal.addEventListener("abort", withdraw);
    this.#requests.add(request);
    if (this.#last) request.onProgress(this.#last);
    try {
      await Promise.race([this.ended, withdrawn]);
    } finally {
      signal.removeEventListener("abort", withdraw);
      this.#requests.delete(request);
      if (this.#requests.size === 0) this.#end.abort();
    }
  }

  /** Reports the first progress at once, and later progress less often the longer the fetch runs: reports must not fill the run's record. */
  #report(progress: Progress): void {
    const now = Date.now();
    this.#last = progress;
    if (now - this.#reportedAt < Math.max(reportEvery, (now - this.#began) / 20)) return;
    this.#reportedAt = now;
    for (const { onProgress } of this.#requests) onProgress(progress);
  }
}
