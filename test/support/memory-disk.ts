import type { StoreDisk, DiskFile, DiskFileOptions } from "#controller/store/durable-disk.ts";

/** A fault in place of an operation: an error, or the machine dies in the middle of it and the operation never ends. */
export type Mishap = "ENOSPC" | "EIO" | "die";

interface Inode {
  content: Buffer;
  /** Changes since the last sync, oldest first. */
  pending: Change[];
}
type Change = { readonly at: number; readonly bytes: Buffer } | { readonly length: number };
type Rename = { readonly name: string; readonly inode: Inode | undefined };

/**
 * A disk in memory that loses unsynced data in a crash. Before each operation, `onOperation` gets the operation's name with its path, and
 * the count of operations, and returns the fault to inject.
 */
export class MemoryDisk implements StoreDisk {
  readonly operations: string[] = [];
  onOperation: ((operation: string, count: number) => Mishap | undefined) | undefined;
  /** The share of a write's bytes that are written before it fails. */
  tornShare = 0.5;
  #names = new Map<string, Inode>();
  #durableNames = new Map<string, Inode>();
  #pendingNames: Rename[] = [];

  readonly create = async (path: string, options?: DiskFileOptions): Promise<DiskFile> => {
    await this.#step(`create ${path}`);
    if (this.#names.has(path)) throw errno("EEXIST");
    const inode: Inode = { content: Buffer.alloc(0), pending: [] };
    this.#setName(path, inode);
    return this.#fileOf(inode, path, options);
  };

  readonly edit = async (path: string, options?: DiskFileOptions): Promise<DiskFile> => {
    await this.#step(`edit ${path}`);
    return this.#fileOf(this.#inode(path), path, options);
  };

  readonly read = async (path: string): Promise<Buffer> => {
    await this.#step(`read ${path}`);
    return Buffer.from(this.#inode(path).content);
  };

  readonly rename = async (from: string, to: string): Promise<void> => {
    await this.#step(`rename ${to}`);
    const inode = this.#inode(from);
    this.#setName(from, undefined);
    this.#setName(to, inode);
  };

  readonly unlink = async (path: string): Promise<void> => {
    await this.#step(`unlink ${path}`);
    this.#inode(path);
    this.#setName(path, undefined);
  };

  readonly list = async (folder: string): Promise<readonly string[]> => {
    await this.#step(`list ${folder}`);
    return [...this.#names.keys()]
      .filter((path) => path.startsWith(`${folder}/`))
      .map((path) => path.slice(folder.length + 1));
  };

  readonly syncFolder = async (folder: string): Promise<void> => {
    await this.#step(`syncFolder ${folder}`);
    this.#durableNames = new Map(this.#names);
    this.#pendingNames = [];
  };

  /** Puts content at a path, as if it had been synced long ago. */
  place(path: string, content: Buffer): void {
    const inode: Inode = { content, pending: [] };
    this.#names.set(path, inode);
    this.#durableNames.set(path, inode);
  }

  contentOf(path: string): Buffer {
    return this.#inode(path).content;
  }

  paths(): readonly string[] {
    return [...this.#names.keys()].toSorted();
  }

  /** One possible disk after a power cut now: each unsynced write and name is kept, lost or torn. */
  afterCrash(random: () => number): MemoryDisk {
    const left = new MemoryDisk();
    const names = new Map(this.#durableNames);
    const isInOrder = random() < 0.5;
    const survivors = Math.floor(random() * (this.#pendingNames.length + 1));
    const survives = (_: Rename, index: number): boolean => (isInOrder ? index < survivors : random() < 0.5);
    for (const { name, inode } of this.#pendingNames.filter(survives)) {
      if (inode) names.set(name, inode);
      else names.delete(name);
    }
    for (const [name, inode] of names) left.place(name, crashed(inode, random));
    return left;
  }

  async #step(operation: string): Promise<Mishap | undefined> {
    this.operations.push(operation);
    await Promise.resolve();
    const mishap = this.onOperation?.(operation, this.operations.length);
    if (operation.startsWith("write ")) return mishap;
    if (mishap === "die") await new Promise(() => undefined);
    if (mishap !== undefined) throw errno(mishap);
    return undefined;
  }

  #setName(name: string, inode: Inode | undefined): void {
    if (inode) this.#names.set(name, inode);
    else this.#names.delete(name);
    this.#pendingNames.push({ name, inode });
  }

  #inode(path: string): Inode {
    const inode = this.#names.get(path);
    if (!inode) throw errno("ENOENT");
    return inode;
  }

  #fileOf(inode: Inode, path: string, { isSynchronous = false }: DiskFileOptions = {}): DiskFile {
    const apply = (change: Change): void => {
      inode.pending.push(change);
      inode.content = applied(inode.content, change);
    };
    return {
      write: async (given, at) => {
        const mishap = await this.#step(`write ${path}`);
        const bytes = Buffer.from(given);
        const done = mishap === undefined ? bytes.length : Math.floor(bytes.length * this.tornShare);
        if (done > 0) apply({ at, bytes: bytes.subarray(0, done) });
        if (mishap === "die") await new Promise(() => undefined);
        if (mishap !== undefined) throw errno(mishap);
        if (isSynchronous) inode.pending = [];
      },
      sync: async () => {
        await this.#step(`sync ${path}`);
        inode.pending = [];
      },
      truncate: async (length) => {
        await this.#step(`truncate ${path}`);
        apply({ length });
      },
      size: async () => {
        await this.#step(`size ${path}`);
        return inode.content.length;
      },
      close: () => Promise.resolve(),
    };
  }
}

/** One possible content of a file after a crash: synced content as it was, each unsynced change kept, lost or torn. */
function crashed({ content, pending }: Inode, random: () => number): Buffer {
  let left = content;
  // The synced content is built again from the front, since a change cannot be undone in the applied content.
  const firstAt = Math.min(
    ...pending.map((change) => ("length" in change ? change.length : change.at)),
    content.length,
  );
  left = left.subarray(0, firstAt);
  for (const change of pending) {
    const fate = random();
    if (fate < 0.3) continue;
    if ("length" in change || fate < 0.6) left = applied(left, change);
    else if (fate < 0.8)
      left = applied(left, {
        at: change.at,
        bytes: change.bytes.subarray(0, Math.floor(random() * change.bytes.length)),
      });
    // The length was written, but not all data: file systems that write them separately show zeros.
    else
      left = applied(left, {
        at: change.at,
        bytes: fate < 0.9 ? someSectors(change, random) : Buffer.alloc(change.bytes.length),
      });
  }
  return left;
}

const sectorBytes = 512;

/** A write of which only some of the file's sectors arrived. */
function someSectors({ at, bytes }: Extract<Change, { at: number }>, random: () => number): Buffer {
  const left = Buffer.alloc(bytes.length);
  for (let from = 0; from < bytes.length;) {
    const to = Math.min(bytes.length, from + sectorBytes - ((at + from) % sectorBytes));
    if (random() < 0.5) bytes.copy(left, from, from, to);
    from = to;
  }
  return left;
}

function applied(content: Buffer, change: Change): Buffer {
  if ("length" in change) return content.subarray(0, change.length);
  const length = Math.max(content.length, change.at + change.bytes.length);
  const grown = Buffer.alloc(length);
  content.copy(grown);
  change.bytes.copy(grown, change.at);
  return grown;
}

function errno(code: string): Error {
  return Object.assign(new Error(code), { code });
}
