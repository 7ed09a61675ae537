import { createHash } from "node:crypto";
import { access, constants, mkdir, open, readdir, readFile, realpath, rm, stat } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { z } from "zod";
import { durableJson, readCached } from "#base/durable-file.ts";
import { replaceFile } from "#base/file.ts";
import { run } from "#base/process.ts";
import { runTask, type RunTasks } from "#base/tasks.ts";
import { formatBytes } from "#base/units.ts";
import { KcoreError } from "#errors/problem.ts";
import { interpreterOf, stripProgram } from "./elf.ts";
import { archive, exportOf, narHashOf, storePathOf, type Tree } from "./nar.ts";

const Runtime = z.object({
  /** The path on nodes, which follows from the runtime's bytes. */
  storePath: z.string(),
  /** As `nix-store -q --hash` prints it. */
  narHash: z.string(),
  /** The file with the path as `nix-store --export` writes it, without the end, compressed by gzip. */
  file: z.string(),
  /** The SHA-256 of that file, in hex. */
  sha256: z.string(),
  /** The bytes of that file. */
  size: z.int(),
  /** kcore's version. */
  version: z.string(),
  /** The version of Node in it. */
  node: z.string(),
  /** As `uname -m` prints it. */
  arch: z.string(),
});

/** A built runtime for nodes, ready to be sent. */
export type Runtime = Readonly<z.infer<typeof Runtime>>;

export interface RuntimeBuildOptions {
  /** kcore's own folder, with package.json, node_modules and dist. */
  readonly root: string;
  /** The folder of built runtimes. */
  readonly cache: string;
  /** Runs and shows the build, if one is needed. */
  readonly tasks: RunTasks;
}

/** The version of this build: raised when the same inputs shall result in another runtime. */
const recipe = 3;
const machines: Readonly<Record<string, string>> = { x64: "x86_64", arm64: "aarch64" };

/** The folder of built runtimes: in kcore's node_modules if that is writable, else below `home`. */
export async function cacheFolder(root: string, home: string): Promise<string> {
  const modules = join(root, "node_modules");
  try {
    await access(modules, constants.W_OK);
    return join(modules, ".cache", "kcore-runtime");
  } catch {
    return join(home, "cache", "runtime");
  }
}

/**
 * Builds the closed runtime (docs/adr/0005-closed-runtime.md) for this machine's architecture, unless the cache has it: the pinned
 * Node without debug data, its libraries and loader, and kcore's node program. The same inputs result in the same bytes.
 * @throws KcoreError RUNTIME_UNAVAILABLE if the pinned Node or the node program is missing, or this machine lacks glibc
 */
export async function buildRuntime({ root, cache, tasks }: RuntimeBuildOptions): Promise<Runtime> {
  const parts = await findParts(root);
  const manifest = join(cache, `${await cacheKey(parts)}.json`);
  const known = await readRuntime(manifest);
  if (known) return known;
  const title = `building the runtime for nodes, once for kcore ${parts.version} (Node ${parts.nodeVersion})`;
  const end = ({ storePath, size }: Runtime): string => `built ${basename(storePath)}: ${formatBytes(size)} to send`;
  return runTask(tasks, title, () => makeRuntime(parts, cache, manifest), end);
}

async function makeRuntime(parts: RuntimeParts, cache: string, manifest: string): Promise<Runtime> {
  const tree = await treeOf(parts);
  const nar = createHash("sha256");
  for (const bytes of archive(tree)) nar.update(bytes);
  const narSha256 = nar.digest();
  const storePath = storePathOf(`kcore-${parts.version}`, narSha256);
  const exported = await promisify(gzip)(Buffer.concat(exportOf(tree, storePath)), { level: 6 });
  const file = join(cache, `${basename(storePath)}.export.gz`);
  const runtime: Runtime = {
    storePath,
    narHash: narHashOf(narSha256),
    file,
    sha256: createHash("sha256").update(exported).digest("hex"),
    size: exported.length,
    version: parts.version,
    node: parts.nodeVersion,
    arch: parts.arch,
  };
  await mkdir(cache, { recursive: true, mode: 0o700 });
  await replaceFile(file, exported);
  await durableJson(manifest, Runtime, runtime).write();
  await prune(cache);
  return runtime;
}

/** The inputs of a runtime. */
interface RuntimeParts {
  readonly version: string;
  readonly nodeVersion: string;
  readonly arch: string;
  readonly node: string;
  readonly loader: string;
  /** Absolute paths of the shared libraries, without the loader. */
  readonly libraries: readonly string[];
  readonly app: string;
}

async function findParts(root: string): Promise<RuntimeParts> {
  const packages = createRequire(join(root, "package.json"));
  const pinned = `node-linux-${process.arch}`;
  const app = join(root, "dist", "node-main.js");
  try {
    const manifest = JSON.parse(await readFile(packages.resolve(`${pinned}/package.json`), "utf8")) as {
      version: string;
    };
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8")) as { version: string };
    await stat(app);
    const node = await realpath(packages.resolve(`${pinned}/bin/node`));
    const loader = interpreterOf(await readStart(node));
    if (loader === undefined) throw new Error(`${node} names no loader`);
    return {
      version,
      nodeVersion: manifest.version,
      arch: machines[process.arch] ?? process.arch,
      node,
      loader,
      libraries: await librariesOf(node, loader),
      app,
    };
  } catch (cause) {
    throw new KcoreError(
      {
        code: "RUNTIME_UNAVAILABLE",
        message: `the runtime for nodes cannot be built on this machine (${process.platform} ${process.arch})`,
        detail: cause instanceof Error ? cause.message : String(cause),
        hint: "npm ci (with optional dependencies) and npm run build; the machine must use glibc",
      },
      { cause },
    );
  }
}

/** The first 64 KiB of a program of 100 MB: its headers. */
async function readStart(path: string): Promise<Buffer> {
  const handle = await open(path);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(65_536), 0, 65_536, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
}

/** The libraries that the loader would load for a program, as ldd(1) finds them. */
async function librariesOf(program: string, loader: string): Promise<string[]> {
  const { stdout } = await run([loader, "--list", program]);
  return [...stdout.matchAll(/=> (\/\S+) \(0x/g)].map(([, path = ""]) => path).toSorted();
}

/** A hash of all inputs. Of big files it has path, size and time: a replaced file has another size or time. */
async function cacheKey({ version, node, loader, libraries, app }: RuntimeParts): Promise<string> {
  const files = await Promise.all(
    [node, loader, ...libraries].map(async (path) => {
      const { size, mtimeMs } = await stat(path);
      return [path, size, mtimeMs];
    }),
  );
  const text = JSON.stringify([recipe, version, files, await readFile(app, "utf8")]);
  return createHash("sha256").update(text).digest("hex").slice(0, 24);
}

async function treeOf({ version, nodeVersion, arch, node, loader, libraries, app }: RuntimeParts): Promise<Tree> {
  const read = async (path: string, executable = false): Promise<Tree> => ({
    type: "file",
    content: await readFile(path),
    executable,
  });
  const lib = new Map<string, Tree>([[basename(loader), await read(loader, true)]]);
  for (const path of libraries) lib.set(basename(path), await read(path));
  const program: Tree = { type: "file", content: stripProgram(await readFile(node)), executable: true };
  const manifest = { name: "kcore", version, node: nodeVersion, arch };
  return folderTree({
    app: folderTree({ "kcore.mjs": await read(app) }),
    bin: folderTree({ node: program, "kcore-node": textFile(wrapper(basename(loader)), true) }),
    lib: { type: "folder", entries: lib },
    "manifest.json": textFile(`${JSON.stringify(manifest, undefined, 2)}\n`),
  });
}

/**
 * The sh program `kcore-node`. It resolves its store path once, so that a switch of the profile during the start cannot mix two versions. It
 * calls readlink(1) only if it was called by a link to itself: a unit of NixOS has no programs in its PATH.
 */
function wrapper(loader: string): string {
  return `#!/bin/sh
self=$0
[ ! -L "$self" ] || self=$(readlink -f "$self")
here=$(cd -P "\${self%/*}/.." && pwd -P) || exit 1
exec "$here/lib/${loader}" --library-path "$here/lib" "$here/bin/node" "$here/app/kcore.mjs" "$@"
`;
}

function folderTree(entries: Readonly<Record<string, Tree>>): Tree {
  return { type: "folder", entries: new Map(Object.entries(entries)) };
}

function textFile(content: string, executable = false): Tree {
  return { type: "file", content: Buffer.from(content), executable };
}

/** Removes all but the four newest runtimes: a run that began earlier may still send an older one. */
async function prune(cache: string): Promise<void> {
  for (const ending of [".export.gz", ".json"]) {
    const files = (await readdir(cache)).filter((name) => name.endsWith(ending)).map((name) => join(cache, name));
    const times = await Promise.all(files.map(async (path) => ({ path, time: (await stat(path)).mtimeMs })));
    const old = times.toSorted((a, b) => b.time - a.time).slice(4);
    await Promise.all(old.map(({ path }) => rm(path, { force: true })));
  }
}

/** The complete runtimes in a cache, the newest first. */
export async function builtRuntimes(cache: string): Promise<readonly Runtime[]> {
  const names = (await readdir(cache).catch(() => [])).filter((name) => name.endsWith(".json"));
  const runtimes = await Promise.all(names.map((name) => readRuntime(join(cache, name))));
  const found = runtimes.filter((runtime) => runtime !== undefined);
  const times = await Promise.all(found.map(async ({ file }) => (await stat(file)).mtimeMs));
  return found
    .map((runtime, at) => ({ runtime, time: times[at] ?? 0 }))
    .toSorted((a, b) => b.time - a.time)
    .map(({ runtime }) => runtime);
}

/** The runtime of a manifest; undefined if the manifest or the runtime's file is missing or incomplete. */
async function readRuntime(path: string): Promise<Runtime | undefined> {
  const runtime = await readCached(path, Runtime);
  const found = runtime && (await stat(runtime.file).catch(() => undefined));
  return found?.size === runtime?.size ? runtime : undefined;
}
