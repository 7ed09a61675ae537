import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { endOfExport, narHashOf, storePathOf } from "./nar.ts";

/** The properties of a compressed export. */
export interface CheckedExport {
  /** SHA-256 (hex) of the compressed bytes. */
  readonly sha256: string;
  /** The number of compressed bytes. */
  readonly size: number;
  /** The archive's hash, as `nix-store -q --hash` prints it. */
  readonly narHash: string;
}

/**
 * Reads the export of one runtime (build.ts), from the offset `start` of a file to the file's end. Undefined if it is no such export, or if
 * its version and bytes do not result in this store path. @throws NodeJS.ErrnoException
 */
export async function checkExport(
  file: string,
  { start = 0, storePath, version }: { readonly start?: number; readonly storePath: string; readonly version: string },
): Promise<CheckedExport | undefined> {
  const whole = createHash("sha256");
  let size = 0;
  const compressed = async function* (source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
    for await (const chunk of source) {
      whole.update(chunk);
      size += chunk.length;
      yield chunk;
    }
  };
  const nar = createHash("sha256");
  const end = endOfExport(storePath);
  let rest = Buffer.alloc(0);
  let skipped = 0;
  const archived = async (source: AsyncIterable<Buffer>): Promise<void> => {
    for await (const chunk of source) {
      // The first eight bytes of an export are not part of the archive (exportOf in nar.ts).
      const skip = Math.min(8 - skipped, chunk.length);
      skipped += skip;
      const bytes = Buffer.concat([rest, chunk.subarray(skip)]);
      // The last bytes may be the export's end, which is not part of the archive either.
      const archiveLength = Math.max(0, bytes.length - end.length);
      nar.update(bytes.subarray(0, archiveLength));
      rest = bytes.subarray(archiveLength);
    }
  };
  try {
    await pipeline(createReadStream(file, { start }), compressed, createGunzip(), archived);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code?.startsWith("Z_") === true) return undefined;
    throw error;
  }
  const narSha256 = nar.digest();
  if (!rest.equals(end) || storePathOf(`kcore-${version}`, narSha256) !== storePath) return undefined;
  return { sha256: whole.digest("hex"), size, narHash: narHashOf(narSha256) };
}
