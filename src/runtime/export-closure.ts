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
import { run, type RunOptions } from "#base/process.ts";
import { KcoreError } from "#errors/problem.ts";

const ExportedPath = z.object({ path: z.string(), file: z.string(), sha256: z.string(), size: z.int() }).readonly();

/** One path as `nix-store --export` writes it, compressed by gzip; without the end (8 bytes of zero), so that several can be concatenated. */
export type ExportedPath = z.infer<typeof ExportedPath>;

const ExportedClosure = z.object({
  storePath: z.string(),
  narHash: z.string(),
  /** Every path of it, dependencies first. */
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

/** The most bytes of one export, which is held in memory while it is sent to nodes. */
const mostBytes = 2 ** 31 - 1;
/** Bytes after the last path of an export. */
const endMark = 8;

/**
 * Exports a path with its closure from the store of this machine, or finds it exported. A found export is judged by its size; its
 * reader compares the hash.
 * @throws KcoreError NIX_EXPORT_FAILED
 */
export async function exportClosure({
  path,
  note,
  ...options
}: ExportOptions & { readonly path: string; readonly note: (text: string) => void }): Promise<ExportedClosure> {
  const { cache, signal, nixStore = "nix-store" } = options;
  const manifest = join(cache, `${digestOf(path)}.json`);
  const known = await readManifest(manifest, path);
  if (known) return known;
  const ask = (...words: readonly string[]): Promise<string> =>
    asked(`this machine's store cannot give ${path}`, [nixStore, ...words, path], { signal });
  const narHash = (await ask("-q", "--hash")).trim();
  const paths = (await ask("-qR")).trim().split("\n");
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const kept = await keptIn(cache, paths);
  const missing = paths.filter((one) => !kept.has(one));
  if (missing.length > 0)
    note(`exporting ${missing.length === 1 ? "1 path" : `${missing.length} paths`} of this machine's store`);
  await inLanes(missing, signal, async (one, { signal: inner }) => {
    kept.set(one, await exportPath(one, { ...options, signal: inner }));
  });
  const closure = { storePath: path, narHash, source: paths.flatMap((one) => kept.get(one) ?? []) };
  // Written last, when every export that the manifest names is complete.
  await durableJson(manifest, ExportedClosure, closure).write();
  return closure;
}

/**
 * Exports one path of this machine's store into the cache; an earlier export of it is replaced.
 * @throws KcoreError NIX_EXPORT_FAILED
 */
export async function exportPath(
  path: string,
  { cache, signal, nixStore = "nix-store" }: ExportOptions,
): Promise<ExportedPath> {
  // A name of its own for each caller: several in one run may export the same path at once.
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
    await asked(`nix-store cannot export ${path}`, [nixStore, "--export", path], {
      signal,
      read: (stdout) => pipeline(stdout, body, createGzip({ level: 6 }), count, target),
    });
    if (!body.isWhole) throw failed(`the export of ${path} has no end`);
    if (size > mostBytes) throw failed(`${path} is ${size} bytes, more than can be sent at once`);
    const sha256 = hash.digest("hex");
    const file = join(cache, `${digestOf(path)}-${sha256}-${size}.gz`);
    await placeFile(aside, file);
    return { path, file, sha256, size };
  } finally {
    await rm(aside, { force: true });
  }
}

/** Passes on all but the end of an export. */
class WithoutEnd extends Transform {
  #held = Buffer.alloc(0);

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    const bytes = Buffer.concat([this.#held, chunk]);
    const most = Math.max(0, bytes.length - endMark);
    this.#held = bytes.subarray(most);
    done(null, bytes.subarray(0, most));
  }

  /** The last bytes were the end. */
  get isWhole(): boolean {
    return this.#held.length === endMark && this.#held.every((byte) => byte === 0);
  }
}

/** The part of a store path that no other has. */
function digestOf(path: string): string {
  return path.slice("/nix/store/".length, "/nix/store/".length + 32);
}

/** The cached exports of these paths, by path. A file whose size agrees with its name was written to its end. */
async function keptIn(cache: string, paths: readonly string[]): Promise<Map<string, ExportedPath>> {
  const byDigest = new Map(paths.map((path) => [digestOf(path), path]));
  const kept = new Map<string, ExportedPath>();
  for (const name of await readdir(cache)) {
    const [, digest = "", sha256 = "", length = ""] = /^([^-]+)-([0-9a-f]{64})-(\d+)\.gz$/.exec(name) ?? [];
    const path = byDigest.get(digest);
    if (path === undefined) continue;
    const found = { path, file: join(cache, name), sha256, size: Number(length) };
    if (await isWhole(found)) kept.set(path, found);
  }
  return kept;
}

async function isWhole({ file, size }: ExportedPath): Promise<boolean> {
  try {
    return (await stat(file)).size === size;
  } catch {
    return false;
  }
}

/** Does the work for each item, as many at a time as there are processors; the first failure ends the others. */
async function inLanes<Item>(
  items: readonly Item[],
  signal: AbortSignal,
  work: (item: Item, lane: { readonly signal: AbortSignal }) => Promise<void>,
): Promise<void> {
  const stop = new AbortController();
  const inner = AbortSignal.any([signal, stop.signal]);
  const left = [...items].values();
  const lane = async (): Promise<void> => {
    for (const item of left) {
      inner.throwIfAborted();
      await work(item, { signal: inner });
    }
  };
  const lanes = Array.from({ length: Math.min(items.length, availableParallelism()) }, lane);
  for (const one of lanes) one.catch(() => stop.abort());
  try {
    await Promise.all(lanes);
  } finally {
    await Promise.allSettled(lanes);
  }
}

/** The output of nix-store. @throws KcoreError; the signal's reason */
async function asked(why: string, words: readonly string[], options: RunOptions): Promise<string> {
  const { code, stdout, stderr } = await run(words, options);
  if (code === 0) return stdout;
  throw code === 127 ? failed("there is no nix-store on this machine") : failed(why, stderr);
}

function failed(message: string, said = ""): KcoreError {
  const detail = said.trim();
  return new KcoreError({
    code: "NIX_EXPORT_FAILED",
    message,
    ...(detail !== "" && { detail }),
    hint: "build it here, or fetch it into this machine's store: nix-store --realise PATH",
  });
}

/** The closure of a manifest; undefined if the manifest or one of its files is missing or incomplete. */
async function readManifest(file: string, path: string): Promise<ExportedClosure | undefined> {
  const closure = await readCached(file, ExportedClosure);
  const whole = await Promise.all((closure?.source ?? []).map(isWhole));
  return closure?.storePath === path && whole.every(Boolean) ? closure : undefined;
}
