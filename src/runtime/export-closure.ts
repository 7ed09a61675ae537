import { createHash, randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rm, stat } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { Transform, type TransformCallback } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import { z } from "zod";
import { durableJson, readCached } from "#base/durable-file.ts";
import { placeFile } from "#base/file.ts";
import { run, type ProcessOptions } from "#base/process.ts";
import { KcoreError } from "#errors/problem.ts";

const ExportedPath = z.object({ path: z.string(), file: z.string(), sha256: z.string(), size: z.int() }).readonly();

/** One path as `nix-store --export` writes it, compressed by gzip, without the end (8 zero bytes), so that exports can be concatenated. */
export type ExportedPath = z.infer<typeof ExportedPath>;

const ExportedClosure = z.object({
  storePath: z.string(),
  narHash: z.string(),
  /** All paths of the closure, dependencies first. */
  source: z.array(ExportedPath).readonly(),
});

/** A closure of the bastion's store, ready for `nix.profile` to send. */
export type ExportedClosure = Readonly<z.infer<typeof ExportedClosure>>;

export interface ExportOptions {
  /** The folder of finished exports, which stay valid because a store path never changes. Closures share the exports of common paths. */
  readonly cache: string;
  readonly signal: AbortSignal;
  /** The program; by default `nix-store` of the PATH. */
  readonly nixStore?: string;
}

/** The most bytes of one export, which is in memory while it is sent to nodes. */
const mostExportBytes = 2 ** 31 - 1;
/** The number of bytes after the last path of an export. */
const endLength = 8;

/**
 * Exports a path with its closure from the store of this machine; complete exports in the cache are used. A cached export counts as
 * complete by its size; the blob of a step that sends it compares the hash. `note` gets a line for the operator.
 * @throws KcoreError NIX_EXPORT_FAILED
 */
export async function exportClosure({
  path,
  note,
  ...options
}: ExportOptions & { readonly path: string; readonly note: (text: string) => void }): Promise<ExportedClosure> {
  const { cache, signal, nixStore = "nix-store" } = options;
  const manifest = join(cache, `${storeHash(path)}.json`);
  const known = await readClosure(manifest, path);
  if (known) return known;
  const query = (...words: readonly string[]): Promise<string> =>
    runNixStore(`this machine's store cannot give ${path}`, [nixStore, ...words, path], { signal });
  const narHash = (await query("-q", "--hash")).trim();
  const paths = (await query("-qR")).trim().split("\n");
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const exports = await exportsIn(cache, paths);
  const missing = paths.filter((path) => !exports.has(path));
  if (missing.length > 0)
    note(`exporting ${missing.length === 1 ? "1 path" : `${missing.length} paths`} of this machine's store`);
  await forEachConcurrently(missing, signal, async (path, stop) => {
    exports.set(path, await exportPath(path, { ...options, signal: stop }));
  });
  const closure = { storePath: path, narHash, source: paths.flatMap((path) => exports.get(path) ?? []) };
  // Written last, after all exports that the manifest names.
  await durableJson(manifest, ExportedClosure, closure).write();
  return closure;
}

/**
 * Exports one path of this machine's store into the cache, in place of an equal earlier export.
 * @throws KcoreError NIX_EXPORT_FAILED
 */
export async function exportPath(
  path: string,
  { cache, signal, nixStore = "nix-store" }: ExportOptions,
): Promise<ExportedPath> {
  // The temporary name is unique, because several callers may export the same path at once.
  const aside = join(cache, `${randomUUID()}.tmp`);
  try {
    const hash = createHash("sha256");
    let size = 0;
    const count = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        size += chunk.length;
        hash.update(chunk);
        done(null, chunk);
      },
    });
    const body = new WithoutEnd();
    const target = createWriteStream(aside, { mode: 0o600 });
    await runNixStore(`nix-store cannot export ${path}`, [nixStore, "--export", path], {
      signal,
      read: (stdout) => pipeline(stdout, body, createGzip({ level: 6 }), count, target),
    });
    if (!body.isWhole) throw failed(`the export of ${path} has no end`);
    if (size > mostExportBytes) throw failed(`${path} is ${size} bytes, more than can be sent at once`);
    const sha256 = hash.digest("hex");
    const file = join(cache, `${storeHash(path)}-${sha256}-${size}.gz`);
    await placeFile(aside, file);
    return { path, file, sha256, size };
  } finally {
    await rm(aside, { force: true });
  }
}

/** Passes on an export without its end. */
class WithoutEnd extends Transform {
  #held = Buffer.alloc(0);

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const bytes = Buffer.concat([this.#held, chunk]);
    const most = Math.max(0, bytes.length - endLength);
    this.#held = bytes.subarray(most);
    done(null, bytes.subarray(0, most));
  }

  /** Whether the last bytes were an export's end. */
  get isWhole(): boolean {
    return this.#held.length === endLength && this.#held.every((byte) => byte === 0);
  }
}

/** The hash in a store path, which no other path has. */
function storeHash(path: string): string {
  return path.slice("/nix/store/".length, "/nix/store/".length + 32);
}

/** The complete exports of these paths in the cache, by path. */
async function exportsIn(cache: string, paths: readonly string[]): Promise<Map<string, ExportedPath>> {
  const pathByStoreHash = new Map(paths.map((path) => [storeHash(path), path]));
  const exports = new Map<string, ExportedPath>();
  for (const name of await readdir(cache)) {
    const [, hash = "", sha256 = "", length = ""] = /^([^-]+)-([0-9a-f]{64})-(\d+)\.gz$/.exec(name) ?? [];
    const path = pathByStoreHash.get(hash);
    if (path === undefined) continue;
    const found = { path, file: join(cache, name), sha256, size: Number(length) };
    if (await isWhole(found)) exports.set(path, found);
  }
  return exports;
}

/** Whether a file has the size of its export: then it was written to its end. */
async function isWhole({ file, size }: ExportedPath): Promise<boolean> {
  try {
    return (await stat(file)).size === size;
  } catch {
    return false;
  }
}

/** Does the work for each item, as many at a time as there are processors; the first failure stops all others. */
async function forEachConcurrently<Item>(
  items: readonly Item[],
  signal: AbortSignal,
  work: (item: Item, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  // One iterator for all workers: each takes the next item.
  const remaining = [...items].values();
  const worker = async (): Promise<void> => {
    for (const item of remaining) {
      either.throwIfAborted();
      await work(item, either);
    }
  };
  const workers = Array.from({ length: Math.min(items.length, availableParallelism()) }, worker);
  for (const running of workers) running.catch(() => stop.abort());
  try {
    await Promise.all(workers);
  } finally {
    await Promise.allSettled(workers);
  }
}

/** The output of nix-store; `failure`: the message if it fails. @throws KcoreError NIX_EXPORT_FAILED; the signal's reason */
async function runNixStore(failure: string, words: readonly string[], options: ProcessOptions): Promise<string> {
  const { code, stdout, stderr } = await run(words, options);
  if (code === 0) return stdout;
  throw code === 127 ? failed("there is no nix-store on this machine") : failed(failure, stderr);
}

function failed(message: string, stderr = ""): KcoreError {
  const detail = stderr.trim();
  return new KcoreError({
    code: "NIX_EXPORT_FAILED",
    message,
    ...(detail !== "" && { detail }),
    hint: "build it here, or fetch it into this machine's store: nix-store --realise PATH",
  });
}

/** The closure of a manifest; undefined if the manifest or one of its files is missing or incomplete. */
async function readClosure(file: string, path: string): Promise<ExportedClosure | undefined> {
  const closure = await readCached(file, ExportedClosure);
  const whole = await Promise.all((closure?.source ?? []).map(isWhole));
  return closure?.storePath === path && whole.every(Boolean) ? closure : undefined;
}
