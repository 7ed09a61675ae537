import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { formatBinary } from "#base/units.ts";
import { KcoreError } from "#errors/problem.ts";

const MIB = 1024 * 1024;
export const MAX_SOURCE_BYTES = MIB;
export const MAX_ROSTER_BYTES = 8 * MIB;

export interface ReadOptions {
  /** As problems name the file; the path unless given. */
  readonly name?: string;
  /** Bytes; 1 MiB unless given. */
  readonly maxBytes?: number;
  /** Throws if the opened file is not trusted (S-20). */
  readonly check?: (name: string, stats: Stats) => void;
}

/**
 * The bytes of a regular file, at most `maxBytes`, read through the descriptor that was checked.
 * @throws KcoreError FILE_UNREADABLE, FILE_TOO_LARGE; errors of `check`.
 */
export function readBytes(path: string, { name = path, maxBytes = MAX_SOURCE_BYTES, check }: ReadOptions = {}): Buffer {
  return withRegularFile(path, { name, check }, (file, { size }) => {
    if (size > maxBytes)
      throw new KcoreError({
        code: "FILE_TOO_LARGE",
        message: `${name} has ${formatBinary(size)}, more than the ${formatBinary(maxBytes)} allowed here`,
        hint: "split it into several files",
      });
    return readAll(file, size);
  });
}

/** Opens a regular file that passes `check`, for as long as `work` takes. @throws KcoreError FILE_UNREADABLE */
export function withRegularFile<Result>(
  path: string,
  { name, check }: { readonly name: string; readonly check: ReadOptions["check"] | undefined },
  work: (file: number, stats: Stats) => Result,
): Result {
  const file = open(path, name);
  try {
    const stats = fstatSync(file);
    if (!stats.isFile()) throw new KcoreError({ code: "FILE_UNREADABLE", message: `${name} is not a regular file` });
    check?.(name, stats);
    return work(file, stats);
  } finally {
    closeSync(file);
  }
}

function open(path: string, name: string): number {
  try {
    // O_NONBLOCK: opening a FIFO in place of a file must not block.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const why = { ENOENT: "it does not exist", EACCES: "no permission", EISDIR: "it is a folder" }[code ?? ""];
    throw new KcoreError(
      { code: "FILE_UNREADABLE", message: `cannot read ${name}: ${why ?? String(code)}` },
      { cause },
    );
  }
}

function readAll(file: number, size: number): Buffer {
  const bytes = Buffer.alloc(size);
  let length = 0;
  while (length < size) {
    const read = readSync(file, bytes, length, size - length, length);
    if (read === 0) break;
    length += read;
  }
  return bytes.subarray(0, length);
}
