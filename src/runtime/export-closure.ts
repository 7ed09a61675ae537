import { spawn, type ChildProcess } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { Transform } from "node:stream";
import { pipeline } from "node:stream/promises";
import { text } from "node:stream/consumers";
import { createGzip } from "node:zlib";
import { KcoreError } from "#errors/problem.ts";

/** A closure of the bastion's store, ready to be sent: what `nix.profile` takes. */
export interface ExportedClosure {
  readonly storePath: string;
  readonly narHash: string;
  /** As `nix-store --export` writes it, compressed by gzip. */
  readonly source: { readonly file: string; readonly sha256: string; readonly size: number };
}

export interface ExportOptions {
  readonly path: string;
  /** Folder for finished ones, which are kept: a store path never changes. */
  readonly cache: string;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
  /** The program; Nix's own unless told otherwise. */
  readonly nixStore?: string;
}

/** Bytes of one content that are sent: it is held in memory while nodes are given it. */
const mostBytes = 2 ** 31 - 1;

/**
 * Exports a path with all that it needs from the store of this machine, or finds it exported.
 * @throws KcoreError NIX_EXPORT_FAILED
 */
export async function exportClosure({
  path,
  cache,
  signal,
  note,
  nixStore = "nix-store",
}: ExportOptions): Promise<ExportedClosure> {
  const manifest = join(cache, `${basename(path)}.json`);
  const known = await readManifest(manifest);
  if (known) return known;
  const ask = (words: readonly string[]): Promise<string> => askNix(nixStore, words, signal);
  const narHash = (await ask(["-q", "--hash", path])).trim();
  const paths = (await ask(["-qR", path])).trim().split("\n");
  note(`exporting ${paths.length === 1 ? "1 path" : `${paths.length} paths`} of this machine's store`);
  await mkdir(cache, { recursive: true, mode: 0o700 });
  const file = join(cache, `${basename(path)}.export.gz`);
  // One for each caller: those of one run ask at the same time.
  const aside = `${file}.${randomUUID()}.tmp`;
  try {
    const child = start(nixStore, ["--export", ...paths], signal);
    const said = text(child.stderr);
    const hash = createHash("sha256");
    let size = 0;
    const count = new Transform({
      transform(chunk: Buffer, _encoding, done) {
        size += chunk.length;
        hash.update(chunk);
        done(null, chunk);
      },
    });
    const ended = endOf(child);
    // When what it writes goes nowhere any more, nobody waits for its end.
    ended.catch(() => undefined);
    await pipeline(child.stdout, createGzip({ level: 6 }), count, createWriteStream(aside, { mode: 0o600 }), {
      signal,
    });
    if ((await ended) !== 0) throw failed(`nix-store cannot export ${path}`, await said);
    if (size > mostBytes)
      throw failed(`${path} with all that it needs is ${size} bytes, more than can be sent at once`);
    await rename(aside, file);
    const closure = { storePath: path, narHash, source: { file, sha256: hash.digest("hex"), size } };
    // Last: what it speaks of is whole.
    await writeFile(aside, `${JSON.stringify(closure, undefined, 2)}\n`, { mode: 0o600 });
    await rename(aside, manifest);
    return closure;
  } finally {
    await rm(aside, { force: true });
  }
}

async function askNix(program: string, words: readonly string[], signal: AbortSignal): Promise<string> {
  const child = start(program, words, signal);
  const [answer, said, code] = await Promise.all([text(child.stdout), text(child.stderr), endOf(child)]);
  if (code === 0) return answer;
  throw failed(`this machine's store cannot give ${words.at(-1) ?? ""}`, said);
}

function start(program: string, words: readonly string[], signal: AbortSignal) {
  const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], signal });
  child.on("error", () => undefined);
  return child;
}

/** @throws KcoreError when there is no such program, and the signal's reason */
async function endOf(child: ChildProcess): Promise<number | null> {
  try {
    const [code] = (await once(child, "close")) as [number | null];
    return code;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    throw failed("there is no nix-store on this machine");
  }
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

/** Undefined when it or its file is not there, or not whole. */
async function readManifest(path: string): Promise<ExportedClosure | undefined> {
  try {
    const closure = JSON.parse(await readFile(path, "utf8")) as ExportedClosure;
    return (await stat(closure.source.file)).size === closure.source.size ? closure : undefined;
  } catch {
    return undefined;
  }
}
