import { createHash } from "node:crypto";
import { readSync } from "node:fs";

/** Bytes: files up to this size stay in memory, since modules parse keys and certificates. */
const smallLimit = 64 << 10;

/** One for all calls, since each call is over before the next one begins. */
const chunk = Buffer.alloc(1 << 20);

/** The hash and size of an open file, and the bytes of a small one. */
export function hashOpenFile(file: number): { sha256: string; size: number; bytes?: Uint8Array } {
  const hash = createHash("sha256");
  let size = 0;
  for (let read = readSync(file, chunk); read > 0; read = readSync(file, chunk)) {
    hash.update(chunk.subarray(0, read));
    size += read;
  }
  // One read gives all of a small regular file, so the chunk still holds it.
  return {
    sha256: hash.digest("hex"),
    size,
    ...(size <= smallLimit && { bytes: Buffer.from(chunk.subarray(0, size)) }),
  };
}
