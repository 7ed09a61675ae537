import { constants, fdatasync, ftruncate, write } from "node:fs";
import { open, readdir, readFile, rename, unlink } from "node:fs/promises";
import { promisify } from "node:util";
import { syncFolder } from "#base/folder.ts";

/** A file that is open for writing. */
export interface DiskFile {
  /** Writes all bytes at a position; a failure may leave some of them. In a synchronous file the written bytes are on the disk. */
  readonly write: (bytes: Uint8Array, position: number) => Promise<void>;
  /** Resolves when the written bytes, and the length that they need, are on the disk: fdatasync(2). */
  readonly sync: () => Promise<void>;
  readonly truncate: (length: number) => Promise<void>;
  readonly size: () => Promise<number>;
  readonly close: () => Promise<void>;
}

export interface DiskFileOptions {
  /**
   * Opens with O_DSYNC: a write resolves when its bytes and the file's length are on the disk. That takes one system call on
   * Node's thread pool in place of two (write, fdatasync): a third less time for a small write.
   */
  readonly isSynchronous?: boolean;
}

/** The disk operations of the store. Tests replace them by a disk that fails. */
export interface StoreDisk {
  /** Creates a file with mode 0600 under any umask; the name must not exist, not even as a link. */
  readonly create: (path: string, options?: DiskFileOptions) => Promise<DiskFile>;
  /** Opens an existing file, not through a link. */
  readonly edit: (path: string, options?: DiskFileOptions) => Promise<DiskFile>;
  readonly read: (path: string) => Promise<Buffer>;
  readonly rename: (from: string, to: string) => Promise<void>;
  readonly unlink: (path: string) => Promise<void>;
  readonly list: (folder: string) => Promise<readonly string[]>;
  /** Resolves when names created, changed and removed in the folder are on the disk. */
  readonly syncFolder: (folder: string) => Promise<void>;
}

const { O_CREAT, O_DSYNC, O_EXCL, O_NOFOLLOW, O_RDONLY, O_RDWR } = constants;
const datasync = promisify(fdatasync);
const truncate = promisify(ftruncate);

export const realDisk: StoreDisk = {
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

function flagsOf({ isSynchronous = false }: DiskFileOptions = {}): number {
  return isSynchronous ? O_DSYNC : 0;
}

type Handle = Awaited<ReturnType<typeof open>>;

/** Uses descriptors and callbacks: a FileHandle's promises cost a quarter of the journal's throughput. */
function fileOf(handle: Handle): DiskFile {
  const { fd } = handle;
  return {
    write: (bytes, position) => writeAll(fd, bytes, position),
    sync: () => datasync(fd),
    truncate: (length) => truncate(fd, length),
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
