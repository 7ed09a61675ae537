import { resolve } from "node:path";
import { formatBytes } from "#base/units.ts";
import { cleanLine } from "#engine/events/clean.ts";
import type { Bundle } from "#rollout/spec.ts";
import { formatResult } from "../terminal/format-result.ts";
import { bundleFileName, readBundleFile, writeBundleFile } from "./bundle-file.ts";
import { findBundle } from "./bundles.ts";

export interface BundleFlags {
  readonly output: "table" | "json";
}
export type BuildFlags = BundleFlags & { readonly out?: string };

/** `kcore update bundle build`. @throws KcoreError RUNTIME_UNAVAILABLE, USAGE */
export async function buildBundle({ out, output }: BuildFlags): Promise<void> {
  const found = await findBundle({});
  const file = resolve(out ?? bundleFileName(found.bundle));
  await writeBundleFile(file, found);
  print(found.bundle, file, output);
}

/** `kcore update bundle show`. @throws KcoreError FILE_UNREADABLE, UPDATE_BUNDLE_INVALID */
export async function showBundle(path: string, { output }: BundleFlags): Promise<void> {
  const { bundle, file } = await readBundleFile(path);
  print(bundle, file, output);
}

function print(bundle: Bundle, file: string, output: BundleFlags["output"]): void {
  process.stdout.write(formatResult({ ...bundle, file }, output, () => drawBundle(bundle, file)));
}

/** What a bundle is, a line for each part of it. */
export function drawBundle({ version, arch, storePath, narHash, sha256, size }: Bundle, file: string): string {
  const rows = { version, arch, storePath, narHash, sha256, size: `${size} (${formatBytes(size)})`, file };
  return Object.entries(rows)
    .map(([name, value]) => `${cleanLine(`${name.padEnd(10)}${value}`)}\n`)
    .join("");
}
