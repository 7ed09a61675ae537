import { mkdir, readdir, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { ifThere, sha256Of } from "#base/file.ts";
import type { Asker } from "#engine/step/blob.ts";
import type { Fetch, RemoteContent } from "#engine/step/remote.ts";
import { fetchFile, type Limits, usualLimits } from "./fetch-file.ts";
import { SharedFetch } from "./shared-fetch.ts";

export interface DownloadOptions {
  /** Where contents are kept, by their hash. */
  readonly folder: string;
  readonly env: NodeJS.ProcessEnv;
  readonly limits?: Limits;
}

/** Milliseconds after which an unused content goes, and the rest of a killed process's. */
const keptFor = 30 * 86_400_000;
const leftFor = 86_400_000;

/**
 * Fetches each content once, however many nodes ask for it, and keeps it by its hash. A node asks only for a content that it lacks, so a dry run
 * and a node in order cost no request.
 */
export function openDownloads({ folder, env, limits = usualLimits }: DownloadOptions): Fetch {
  const running = new Map<string, SharedFetch>();
  /** Hashed in this process. */
  const sound = new Set<string>();

  async function bring(content: RemoteContent, signal: AbortSignal, tell: Asker["tell"]): Promise<void> {
    const file = join(folder, content.sha256);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    if (!(await isKept(file, content.sha256, signal))) {
      tell({ got: 0 });
      await forgetOld(folder);
      await fetchFile(content, file, { env, limits, signal, tell });
    }
    sound.add(content.sha256);
  }

  return async (content, asker) => {
    asker.signal.throwIfAborted();
    const { sha256 } = content;
    const file = join(folder, sha256);
    const known = sound.has(sha256) ? await stat(file).catch(() => undefined) : undefined;
    if (known) return { file, sha256, size: known.size };
    // Another URL may give the content that this one does not.
    const key = `${sha256} ${String(content.url)}`;
    let shared = running.get(key);
    if (!shared || shared.isLeft) {
      const begun = new SharedFetch((signal, tell) => bring(content, signal, tell));
      running.set(key, (shared = begun));
      const forget = (): boolean => running.get(key) === begun && running.delete(key);
      begun.ended.then(forget, forget);
    }
    await shared.join(asker);
    return { file, sha256, size: (await stat(file)).size };
  };
}

/** Whether the file is there and has the hash of its name. */
async function isKept(file: string, sha256: string, signal: AbortSignal): Promise<boolean> {
  if ((await ifThere(sha256Of(file, signal))) !== sha256) return false;
  const now = new Date();
  await utimes(file, now, now);
  return true;
}

async function forgetOld(folder: string): Promise<void> {
  for (const name of await readdir(folder)) {
    const file = join(folder, name);
    const found = await stat(file).catch(() => undefined);
    const limit = name.endsWith(".tmp") ? leftFor : keptFor;
    if (found && Date.now() - found.mtimeMs > limit) await rm(file, { force: true });
  }
}
