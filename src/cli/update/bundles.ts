import { createReadStream, readSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import { formatBytes } from "#base/units.ts";
import type { BundleSource } from "#api/bundle-transfer.ts";
import { replaceFile } from "#base/file.ts";
import type { RunTasks } from "#base/tasks.ts";
import { shippedRoot } from "#engine/project/shipped.ts";
import { withRegularFile } from "#engine/yaml/regular-file.ts";
import { KcoreError } from "#errors/problem.ts";
import { updateKindOf, Bundle, type UpdateSpec } from "#rollout/spec.ts";
import { builtRuntimes, buildRuntime, cacheFolder, type Runtime } from "#runtime/build.ts";
import { checkExport } from "#runtime/check-export.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { writeError } from "../project/write-asked.ts";
import { shownTasks } from "../terminal/shown-tasks.ts";
import { formatResult } from "../terminal/format-result.ts";
import { formatTitled } from "../terminal/format-table.ts";
import { kcoreVersion } from "../process/version.ts";

export interface BundleChoice {
  readonly version?: string | undefined;
  readonly sha256?: string | undefined;
  /** A bundle's file (`kcore update bundle build`). */
  readonly file?: string | undefined;
}

export interface BundlePlaces {
  /** The folder of built runtimes. */
  readonly cache?: string;
  /** Runs the build of a runtime. */
  readonly tasks: RunTasks;
}

/**
 * Finds the chosen bundle in the given file, else among the runtimes that were built here. An empty choice means this
 * kcore's own runtime. That runtime is built if it is missing, unless another version is chosen.
 * @throws KcoreError UPDATE_BUNDLE_UNKNOWN, UPDATE_BUNDLE_INVALID, FILE_UNREADABLE, RUNTIME_UNAVAILABLE
 */
export async function findBundle(wanted: BundleChoice, { tasks, ...places }: BundlePlaces): Promise<FoundBundle> {
  if (wanted.file !== undefined) {
    const found = await readBundleFile(wanted.file);
    if (isWanted(found.bundle, wanted)) return found;
    const { version, sha256 } = found.bundle;
    throw unknownBundle(wanted, `${wanted.file} holds ${version} (SHA-256 ${sha256})`);
  }
  const root = shippedRoot();
  const cache = places.cache ?? (await cacheFolder(root, kcoreHome()));
  const isOwn = wanted.version === undefined || wanted.version === kcoreVersion();
  const built = wanted.sha256 !== undefined || !isOwn ? await builtRuntimes(cache) : [];
  const found = built.find((runtime) => isWanted(runtime, wanted));
  if (found) return bundleOfRuntime(found);
  const own = isOwn ? await buildRuntime({ root, cache, tasks }) : undefined;
  if (own && isWanted(own, wanted)) return bundleOfRuntime(own);
  throw unknownBundle(wanted, `the runtimes that were built here, in ${cache}, are others`);
}

/**
 * The bundle of an update of kcore's runtime; undefined for an update of NixOS systems. `file`: the value of `--bundle`.
 * @throws KcoreError USAGE when systems are given one, and as findBundle
 */
export async function bundleFor(
  { name, spec: { target } }: { readonly name: string; readonly spec: Pick<UpdateSpec, "target"> },
  file: string | undefined,
  tasks: RunTasks,
): Promise<FoundBundle | undefined> {
  const { version, bundle: sha256 } = target;
  if (updateKindOf({ target }) === "runtime") return findBundle({ version, sha256, file }, { tasks });
  if (file === undefined) return undefined;
  throw new KcoreError({
    code: "USAGE",
    message: `“${name}” is about NixOS systems, which need no bundle`,
    hint: "leave --bundle out",
  });
}

function bundleOfRuntime({ file, sha256, size, storePath, narHash, version, arch }: Runtime): FoundBundle {
  return { bundle: { sha256, size, storePath, narHash, version, arch }, file, start: 0 };
}

function isWanted(bundle: Pick<Bundle, "version" | "sha256">, { version, sha256 }: BundleChoice): boolean {
  return (version ?? bundle.version) === bundle.version && (sha256 ?? bundle.sha256) === bundle.sha256;
}

function unknownBundle({ version, sha256 }: BundleChoice, detail: string): KcoreError {
  const what = [version && `kcore ${version}`, sha256 && `SHA-256 ${sha256}`].filter(Boolean).join(", ");
  const file = bundleFileName({ version: version ?? "VERSION", arch: "ARCH" });
  return new KcoreError({
    code: "UPDATE_BUNDLE_UNKNOWN",
    message: `there is no bundle of ${what} here`,
    detail,
    hint: `with that version of kcore: kcore update bundle build; then give its file here: --bundle ${file}`,
  });
}

/** A bundle, with the file and the position where its bytes begin. */
export interface FoundBundle extends BundleSource {
  readonly bundle: Bundle;
}

/** The first line of a bundle's file, JSON; the compressed export follows it. */
const Header = z.object({ kind: z.literal("kcore-bundle"), format: z.int(), bundle: z.unknown() });
const formatVersion = 1;
const maxHeaderBytes = 8_192;

/** The default name of a bundle's file. */
export function bundleFileName({ version, arch }: Pick<Bundle, "version" | "arch">): string {
  return `kcore-${version}-${arch}.bundle`;
}

/** Writes a bundle as one file, whole or not at all, with a header that describes it. @throws KcoreError USAGE */
export async function writeBundleFile(path: string, { bundle, file, start }: FoundBundle): Promise<void> {
  const parts = async function* (): AsyncGenerator<string | Buffer> {
    yield `${JSON.stringify({ kind: "kcore-bundle", format: formatVersion, bundle })}\n`;
    yield* createReadStream(file, { start }) as AsyncIterable<Buffer>;
  };
  await replaceFile(path, parts(), { mode: 0o644 }).catch((cause: unknown) => {
    throw writeError(path, cause);
  });
}

/**
 * Reads and checks a bundle's file: its bytes must have the hashes of its header, and be the runtime that the header names.
 * @throws KcoreError FILE_UNREADABLE, UPDATE_BUNDLE_INVALID
 */
export async function readBundleFile(path: string): Promise<FoundBundle> {
  const { bundle, start } = readBundleHeader(path);
  const found = await checkExport(path, { start, ...bundle });
  if (!found) throw invalidBundle(path, "it holds another runtime than it names, or a part of one");
  for (const field of ["size", "sha256", "narHash"] as const)
    if (found[field] !== bundle[field])
      throw invalidBundle(path, `its ${field} is ${found[field]}, not ${bundle[field]}`);
  return { bundle, file: resolve(path), start };
}

function readBundleHeader(path: string): { readonly bundle: Bundle; readonly start: number } {
  const bytes = readBeginning(path);
  const end = bytes.indexOf("\n");
  const header = Header.safeParse(end < 0 ? undefined : parse(bytes.toString("utf8", 0, end)));
  if (!header.success) throw invalidBundle(path, "it does not begin as a bundle does");
  if (header.data.format > formatVersion)
    throw invalidBundle(path, "a newer kcore wrote it", "use that version of kcore here, too");
  const bundle = Bundle.safeParse(header.data.bundle);
  const [issue] = bundle.error?.issues ?? [];
  if (!bundle.success) throw invalidBundle(path, `${issue?.path.join(".")}: ${issue?.message}`);
  return { bundle: bundle.data, start: end + 1 };
}

function readBeginning(path: string): Buffer {
  return withRegularFile(path, { name: path, check: undefined }, (file) => {
    const bytes = Buffer.alloc(maxHeaderBytes);
    return bytes.subarray(0, readSync(file, bytes, 0, maxHeaderBytes, 0));
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalidBundle(path: string, reason: string, hint = "build it anew: kcore update bundle build"): KcoreError {
  return new KcoreError({ code: "UPDATE_BUNDLE_INVALID", message: `${path} is not a bundle to use: ${reason}`, hint });
}

export interface BundleFlags {
  readonly output: "table" | "json";
}
export type BuildFlags = BundleFlags & { readonly out?: string };

/** `kcore update bundle build`: writes this kcore's bundle to a file. @throws KcoreError RUNTIME_UNAVAILABLE, USAGE */
export async function buildBundle({ out, output }: BuildFlags): Promise<void> {
  const found = await findBundle({}, { tasks: shownTasks(output) });
  const file = resolve(out ?? bundleFileName(found.bundle));
  await writeBundleFile(file, found);
  print(found.bundle, file, output);
}

/**
 * `kcore update bundle show`: checks a bundle's file and prints its properties. @throws KcoreError FILE_UNREADABLE,
 * UPDATE_BUNDLE_INVALID
 */
export async function showBundle(path: string, { output }: BundleFlags): Promise<void> {
  const { bundle, file } = await readBundleFile(path);
  print(bundle, file, output);
}

function print(bundle: Bundle, file: string, output: BundleFlags["output"]): void {
  process.stdout.write(formatResult({ ...bundle, file }, output, () => drawBundle(bundle, file)));
}

/** The properties of a bundle, one a line. */
export function drawBundle({ version, arch, storePath, narHash, sha256, size }: Bundle, file: string): string {
  const rows = { version, arch, storePath, narHash, sha256, size: `${size} (${formatBytes(size)})`, file };
  return formatTitled(Object.entries(rows), 10);
}
