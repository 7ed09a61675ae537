import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { shippedRoot } from "#engine/project/shipped.ts";
import { KcoreError } from "#errors/problem.ts";
import { bringsOf, Bundle, type UpdateSpec } from "#rollout/spec.ts";
import { buildRuntime } from "#runtime/build.ts";
import { cacheFolder } from "#runtime/cache-folder.ts";
import { kcoreHome } from "../process/kcore-home.ts";
import { toStderr, type Say } from "../terminal/say.ts";
import { kcoreVersion } from "../version.ts";
import { bundleFileName, readBundleFile, type FoundBundle } from "./bundle-file.ts";

export interface BundleWanted {
  readonly version?: string | undefined;
  readonly sha256?: string | undefined;
  /** A bundle's file (`kcore update bundle build`). */
  readonly file?: string | undefined;
}

export interface BundlePlaces {
  /** kcore's own folder. */
  readonly root?: string;
  /** Where runtimes that were built are kept. */
  readonly cache?: string;
  readonly note?: Say;
}

/** What a runtime's manifest in the cache says of it, besides more. */
const Built = z.object({ ...Bundle.shape, file: z.string() });
type Built = z.output<typeof Built>;

/**
 * The bundle that is wanted, and where its bytes lie: in the file given, else among the runtimes that were built here, that of this very
 * kcore (which is built where it is not) among them. Nothing wanted: this kcore's own.
 * @throws KcoreError UPDATE_BUNDLE_UNKNOWN, UPDATE_BUNDLE_INVALID, FILE_UNREADABLE, RUNTIME_UNAVAILABLE
 */
export async function findBundle(wanted: BundleWanted, places: BundlePlaces = {}): Promise<FoundBundle> {
  if (wanted.file !== undefined) {
    const found = await readBundleFile(wanted.file);
    if (isWanted(found.bundle, wanted)) return found;
    const { version, sha256 } = found.bundle;
    throw unknown(wanted, `${wanted.file} holds ${version} (SHA-256 ${sha256})`);
  }
  const { root = shippedRoot(), note = toStderr } = places;
  const cache = places.cache ?? (await cacheFolder(root, kcoreHome()));
  const isOwn = wanted.version === undefined || wanted.version === kcoreVersion();
  const known = wanted.sha256 !== undefined || !isOwn ? await findBuilt(cache, wanted) : undefined;
  if (known) return known;
  const own = isOwn ? foundOf(await buildRuntime({ root, cache, note })) : undefined;
  if (own && isWanted(own.bundle, wanted)) return own;
  throw unknown(wanted, `the runtimes that were built here, in ${cache}, are others`);
}

/**
 * The bundle of an update of kcore's runtime; an update of NixOS systems has none. `file`: what `--bundle` gives.
 * @throws KcoreError USAGE when systems are given one, and as findBundle
 */
export async function bundleFor(
  { name, spec: { target } }: { readonly name: string; readonly spec: Pick<UpdateSpec, "target"> },
  file: string | undefined,
): Promise<FoundBundle | undefined> {
  const { version, bundle: sha256 } = target;
  if (bringsOf({ target }) === "runtime") return findBundle({ version, sha256, file });
  if (file === undefined) return undefined;
  throw new KcoreError({
    code: "USAGE",
    message: `“${name}” is about NixOS systems, which need no bundle`,
    hint: "leave --bundle out",
  });
}

/** The newest that was built. */
async function findBuilt(cache: string, wanted: BundleWanted): Promise<FoundBundle | undefined> {
  const names = await readdir(cache).catch(() => []);
  const found = await Promise.all(
    names.filter((name) => name.endsWith(".json")).map((name) => readBuilt(join(cache, name))),
  );
  return found
    .filter((built) => built !== undefined)
    .filter(({ built }) => isWanted(built, wanted))
    .toSorted((a, b) => b.time - a.time)
    .map(({ built }) => foundOf(built))[0];
}

/** Undefined: what is no manifest, or one of a file that is not there any more, or not whole. */
async function readBuilt(manifest: string): Promise<{ readonly built: Built; readonly time: number } | undefined> {
  try {
    const built = Built.parse(JSON.parse(await readFile(manifest, "utf8")));
    const { size, mtimeMs } = await stat(built.file);
    return size === built.size ? { built, time: mtimeMs } : undefined;
  } catch {
    return undefined;
  }
}

function foundOf({ file, ...built }: Built): FoundBundle {
  const { sha256, size, storePath, narHash, version, arch } = built;
  return { bundle: { sha256, size, storePath, narHash, version, arch }, file, start: 0 };
}

function isWanted(bundle: Pick<Bundle, "version" | "sha256">, { version, sha256 }: BundleWanted): boolean {
  return (version ?? bundle.version) === bundle.version && (sha256 ?? bundle.sha256) === bundle.sha256;
}

function unknown({ version, sha256 }: BundleWanted, detail: string): KcoreError {
  const what = [version && `kcore ${version}`, sha256 && `SHA-256 ${sha256}`].filter(Boolean).join(", ");
  const file = bundleFileName({ version: version ?? "VERSION", arch: "ARCH" });
  return new KcoreError({
    code: "UPDATE_BUNDLE_UNKNOWN",
    message: `there is no bundle of ${what} here`,
    detail,
    hint: `with that version of kcore: kcore update bundle build; then give its file here: --bundle ${file}`,
  });
}
