import { createReadStream, readSync } from "node:fs";
import { resolve } from "node:path";
import { z } from "zod";
import type { BundleSource } from "#api/bundle-transfer.ts";
import { replaceFile } from "#base/file.ts";
import { withRegularFile } from "#engine/yaml/read.ts";
import { KcoreError } from "#errors/problem.ts";
import { Bundle } from "#rollout/spec.ts";
import { checkExport } from "#runtime/check-export.ts";
import { unwritten } from "../project/write-asked.ts";

/** A bundle, and where its bytes lie. */
export interface FoundBundle extends BundleSource {
  readonly bundle: Bundle;
}

/** The first line of a bundle's file, JSON; behind it stands the compressed export. */
const Header = z.object({ kind: z.literal("kcore-bundle"), format: z.int(), bundle: z.unknown() });
const format = 1;
const longestHeader = 8_192;

/** The name of a bundle's file, unless another is wanted. */
export function bundleFileName({ version, arch }: Pick<Bundle, "version" | "arch">): string {
  return `kcore-${version}-${arch}.bundle`;
}

/** Writes a bundle as one file that says what it is; never half of one under its name. @throws KcoreError USAGE */
export async function writeBundleFile(path: string, { bundle, file, start }: FoundBundle): Promise<void> {
  const parts = async function* (): AsyncGenerator<string | Buffer> {
    yield `${JSON.stringify({ kind: "kcore-bundle", format, bundle })}\n`;
    yield* createReadStream(file, { start }) as AsyncIterable<Buffer>;
  };
  await replaceFile(path, parts(), { mode: 0o644 }).catch((cause: unknown) => {
    throw unwritten(path, cause);
  });
}

/**
 * Reads a bundle's file, the whole of it: its bytes are those that it names, and they are the runtime of that version at that store path.
 * @throws KcoreError FILE_UNREADABLE, UPDATE_BUNDLE_INVALID
 */
export async function readBundleFile(path: string): Promise<FoundBundle> {
  const { bundle, start } = readHeader(path);
  const found = await checkExport(path, { start, ...bundle });
  if (!found) throw invalid(path, "it holds another runtime than it names, or a part of one");
  for (const field of ["size", "sha256", "narHash"] as const)
    if (found[field] !== bundle[field]) throw invalid(path, `its ${field} is ${found[field]}, not ${bundle[field]}`);
  return { bundle, file: resolve(path), start };
}

function readHeader(path: string): { readonly bundle: Bundle; readonly start: number } {
  const bytes = readBeginning(path);
  const end = bytes.indexOf("\n");
  const header = Header.safeParse(end < 0 ? undefined : parse(bytes.toString("utf8", 0, end)));
  if (!header.success) throw invalid(path, "it does not begin as a bundle does");
  if (header.data.format > format) throw invalid(path, "a newer kcore wrote it", "use that version of kcore here, too");
  const bundle = Bundle.safeParse(header.data.bundle);
  const [issue] = bundle.error?.issues ?? [];
  if (!bundle.success) throw invalid(path, `${issue?.path.join(".")}: ${issue?.message}`);
  return { bundle: bundle.data, start: end + 1 };
}

function readBeginning(path: string): Buffer {
  return withRegularFile(path, { name: path, check: undefined }, (file) => {
    const bytes = Buffer.alloc(longestHeader);
    return bytes.subarray(0, readSync(file, bytes, 0, longestHeader, 0));
  });
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function invalid(path: string, reason: string, hint = "build it anew: kcore update bundle build"): KcoreError {
  return new KcoreError({ code: "UPDATE_BUNDLE_INVALID", message: `${path} is not a bundle to use: ${reason}`, hint });
}
