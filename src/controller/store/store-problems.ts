import { KcoreError } from "#errors/problem.ts";

/** Errors after which a later write may succeed: no space, a read-only file system, no free files or memory. */
const passingErrors = new Set(["ENOSPC", "EDQUOT", "EROFS", "EFBIG", "EMFILE", "ENFILE", "ENOMEM"]);

export function isPassing(error: unknown): boolean {
  return passingErrors.has((error as NodeJS.ErrnoException).code ?? "");
}

/** Whether an error is of the operating system or the disk, not a bug. */
export function isOfDisk(error: unknown): boolean {
  return (
    typeof (error as NodeJS.ErrnoException).syscall === "string" || (error as NodeJS.ErrnoException).code === "EIO"
  );
}

/** The error of a write that changed nothing; later writes are tried. */
export function storeUnwritable(folder: string, cause: unknown): KcoreError {
  return new KcoreError(
    {
      code: "STORE_UNWRITABLE",
      message: `the controller's state cannot be written to ${folder}: ${errorText(cause)}`,
      hint:
        (cause as NodeJS.ErrnoException).code === "EROFS"
          ? "dmesg tells why the file system became read-only; mount it for writing again, after fsck if the kernel found errors"
          : "free space on that file system; writes that were not acknowledged are not kept, and writing goes on by itself",
    },
    { cause },
  );
}

/**
 * The error of a disk that failed to keep written bytes. A second fsync proves nothing: the kernel may have dropped the pages and
 * forgotten the error. So the process has to end, and the next start reads the disk.
 */
export function broken(folder: string, cause: unknown): KcoreError {
  return new KcoreError(
    {
      code: "STORE_BROKEN",
      message: `the disk below ${folder} failed: ${errorText(cause)}`,
      hint: "dmesg tells more; a controller that starts again reads what is really on the disk",
    },
    { cause },
  );
}

export function storeCorrupt(path: string, what: string, cause?: unknown): KcoreError {
  return new KcoreError(
    {
      code: "STORE_CORRUPT",
      message: `the controller's state is damaged: ${path}: ${what}`,
      hint: "kcore controller repair keeps what is whole and fetches the rest from the other controllers; or restore a backup: kcore controller restore",
    },
    { cause },
  );
}

export function tooNew(path: string, format: string): KcoreError {
  return new KcoreError({
    code: "STORE_TOO_NEW",
    message: `${path} was written by a newer kcore (its format is “${format.slice(0, 60)}”)`,
    hint: "run that version, or restore a backup of this one",
  });
}

export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
