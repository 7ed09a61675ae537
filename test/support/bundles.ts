import { createHash, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Bundle } from "#rollout/spec.ts";
import { archive, exportOf, narHashOf, storePathOf, type Tree } from "#runtime/nar.ts";

/** Writes a runtime as buildRuntime caches it, into `folder`. It has `content` random bytes, so that they do not compress. */
export async function writeRuntime(
  folder: string,
  version = "0.9.0",
  content = 200_000,
): Promise<{ readonly bundle: Bundle; readonly file: string; readonly manifest: string }> {
  const app: Tree = { type: "file", content: randomBytes(content), executable: true };
  const tree: Tree = { type: "folder", entries: new Map([["app", app]]) };
  const narSha256 = createHash("sha256")
    .update(Buffer.concat(archive(tree)))
    .digest();
  const storePath = storePathOf(`kcore-${version}`, narSha256);
  const exported = gzipSync(Buffer.concat(exportOf(tree, storePath)));
  const sha256 = createHash("sha256").update(exported).digest("hex");
  const bundle = { sha256, size: exported.length, storePath, narHash: narHashOf(narSha256), version, arch: "x86_64" };
  const file = join(folder, `${sha256}.export.gz`);
  const manifest = join(folder, `${sha256.slice(0, 24)}.json`);
  await writeFile(file, exported);
  await writeFile(manifest, JSON.stringify({ ...bundle, file, node: "24.0.0", command: "true" }));
  return { bundle, file, manifest };
}
