import { constants, fdatasync, ftruncate, write } from "node:fs";
import { open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { promisify } from "node:util";
import { syncFolder } from "#base/folder.ts";

/** A file that is open for writing. */
export interface DiskFile {
  /** Writes all bytes at a position; may have written some of them when it fails. In a synchronous file they are on the disk then. */
  readonly write: (bytes: Uint8Array, position: number) => Promise<void>;
  /** Resolves when the written bytes, and the length that they need, are on the disk: fdatasync(2). */
  readonly sync: () => Promise<void>;
  readonly truncate: (length: number) => Promise<void>;
  readonly size: () => Promise<number>;
  readonly close: () => Promise<void>;
}

export interface FileOptions {
  /**
   * Each write resolves when its bytes, and the length that they need, are on the disk: O_DSYNC of open(2). It takes
   * one hand-over to another thread and one system call instead of two, a third of the time of a small write.
   */
  readonly isSynchronous?: boolean;
}

/** The disk operations of the store. Tests put a failing or dying disk in its place. */
export interface Disk {
  /** A new file with mode 0600, also against the umask; the name must be free, also of links. */
  readonly create: (path: string, options?: FileOptions) => Promise<DiskFile>;
  /** An existing file, not through a link. */
  readonly edit: (path: string, options?: FileOptions) => Promise<DiskFile>;
  readonly read: (path: string) => Promise<Buffer>;
  readonly rename: (from: string, to: string) => Promise<void>;
  readonly unlink: (path: string) => Promise<void>;
  readonly list: (folder: string) => Promise<readonly string[]>;
  /** Resolves when names made, changed and removed in the folder are on the disk. */
  readonly syncFolder: (folder: string) => Promise<void>;
}

const { O_CREAT, O_DSYNC, O_EXCL, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants;
const datasync = promisify(fdatasync);
const shorten = promisify(ftruncate);

export const realDisk: Disk = {
  async create(path, options) {
    const handle = await open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | flagsOf(options), 0o600);
    try {
      await handle.chmod(0o600);
      return fileOf(handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  },
  edit: async (path, options) => fileOf(await open(path, O_RDWR | O_NOFOLLOW | flagsOf(options))),
  async read(path) {
    const handle = await open(path, O_RDONLY | O_NOFOLLOW);
    try {
      return await readFile(handle);
    } finally {
      await handle.close();
    }
  },
  rename,
  unlink,
  list: (folder) => readdir(folder),
  syncFolder,
};

function flagsOf({ isSynchronous = false }: FileOptions = {}): number {
  return isSynchronous ? O_DSYNC : 0;
}

type Handle = Awaited<ReturnType<typeof open>>;

/** By descriptor and callback: a FileHandle's own promises cost a quarter of the journal's speed. */
function fileOf(handle: Handle): DiskFile {
  const { fd } = handle;
  return {
    write: (bytes, position) => writeAll(fd, bytes, position),
    sync: () => datasync(fd),
    truncate: (length) => shorten(fd, length),
    size: async () => (await handle.stat()).size,
    close: () => handle.close(),
  };
}

function writeAll(fd: number, bytes: Uint8Array, position: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const go = (from: number): void => {
      write(fd, bytes, from, bytes.length - from, position + from, (error, written) => {
        if (error) reject(error);
        else if (from + written === bytes.length) resolve();
        else go(from + written);
      });
    };
    go(0);
  });
}
