import { constants } from "node:fs";
import { open, stat, statfs, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { ifThere, hashFile } from "#base/file.ts";
import { ensurePrivateFolder } from "#base/folder.ts";
import { BundleSha256 } from "#rollout/spec.ts";
import { Refused } from "../cluster/refused.ts";
import { realDisk, type StoreDisk } from "../store/durable-disk.ts";

/** The bytes of a bundle that the store has; `whole`: all of them, with the right checksum. */
export interface BundleState {
  readonly held: number;
  readonly whole: boolean;
}

export interface StoredPiece {
  readonly offset: number;
  /** The size of the whole bundle. */
  readonly size: number;
  readonly data: Uint8Array;
}

export interface BundleStoreOptions {
  readonly folder: string;
  /** Whether an update that is not settled brings this bundle, which is then never removed to make room. */
  readonly isNeeded: (sha256: string) => boolean;
  /** The disk of a test. */
  readonly disk?: StoreDisk;
  readonly freeBytes?: (folder: string) => Promise<number>;
}

/** A bundle's file, complete or a part. */
interface OnDisk {
  readonly sha256: string;
  readonly whole: boolean;
  readonly bytes: number;
  /** The time of the last write, ms since 1970. */
  readonly changed: number;
}

/** The most bundles that no update needs, and their bytes. */
const spareLimits = { bundles: 4, bytes: 2 * 1024 * 1024 * 1024 } as const;

/**
 * The bundles to remove before the bundle `coming` is stored: the oldest that no update needs. The limit of the number includes `coming`, and
 * parts count as bundles, so that unfinished uploads fill no disk.
 */
export function bundlesToRemove(
  all: readonly OnDisk[],
  { coming, isNeeded }: { readonly coming: string; readonly isNeeded: (sha256: string) => boolean },
): readonly OnDisk[] {
  const spare = all
    .filter(({ sha256 }) => sha256 !== coming && !isNeeded(sha256))
    .toSorted((a, b) => b.changed - a.changed);
  let bytes = 0;
  return spare.filter((one, index) => {
    bytes += one.bytes;
    return index >= spareLimits.bundles - 1 || bytes > spareLimits.bytes;
  });
}

/** The largest accepted bundle, bytes; larger than any runtime. */
const largestBundle = 1024 * 1024 * 1024;
/** Bytes of the disk that stay free for the controller's own state. */
const reserve = 128 * 1024 * 1024;
const fileName = /^([0-9a-f]{64})(\.part)?$/;

export type BundleStore = ReturnType<typeof openBundleStore>;

/** The bundles on a controller's disk: files in a folder of their own, named by their SHA-256. */
export function openBundleStore({ folder, isNeeded, disk = realDisk, freeBytes = freeBytesOf }: BundleStoreOptions) {
  const oneByOne = queueByName();
  /** Bundles whose checksum this process has checked. */
  const checked = new Set<string>();
  const pathOf = (sha256: string): string => join(folder, sha256);
  const partOf = (sha256: string): string => `${pathOf(sha256)}.part`;

  const read = async (): Promise<readonly OnDisk[]> => {
    const names = (await ifThere(disk.list(folder))) ?? [];
    const found = names.map(async (name) => {
      const [, sha256, part] = fileName.exec(name) ?? [];
      const there = sha256 === undefined ? undefined : await ifThere(stat(join(folder, name)));
      if (sha256 === undefined || there?.isFile() !== true) return undefined;
      return { sha256, whole: part === undefined, bytes: there.size, changed: there.mtimeMs };
    });
    return (await Promise.all(found)).filter((one) => one !== undefined);
  };

  const remove = async (path: string): Promise<void> => {
    await ifThere(disk.unlink(path));
    await disk.syncFolder(folder);
  };

  /** Before the first piece of a bundle: removes the oldest bundles that no update needs. */
  const makeRoom = async (sha256: string): Promise<void> => {
    for (const old of bundlesToRemove(await read(), { coming: sha256, isNeeded }))
      // In the queue of the old bundle's name, so that no write to it is under way.
      await oneByOne(old.sha256, () => remove(old.whole ? pathOf(old.sha256) : partOf(old.sha256)));
  };

  const append = async (sha256: string, { offset, size, data }: StoredPiece): Promise<BundleState> => {
    const whole = await ifThere(stat(pathOf(sha256)));
    if (whole) return { held: whole.size, whole: true };
    const part = partOf(sha256);
    const found = (await ifThere(stat(part)))?.size ?? 0;
    const held = found > size ? 0 : found;
    if (offset !== held) return { held, whole: false };
    if ((await freeBytes(folder)) < size - held + reserve)
      throw noRoom(`a bundle of ${size} bytes would leave too little of this controller's disk to its own state`);
    const file = (await ifThere(disk.edit(part))) ?? (await disk.create(part));
    try {
      if (found > held) await file.truncate(held);
      if (data.length > 0) await file.write(data, held);
      await file.sync();
    } catch (error) {
      // Removes the bytes of a failed write, which no answer has acknowledged.
      await file.truncate(held).catch(() => undefined);
      throw error;
    } finally {
      await file.close();
    }
    return held + data.length < size ? { held: held + data.length, whole: false } : complete(sha256, size);
  };

  const complete = async (sha256: string, size: number): Promise<BundleState> => {
    const part = partOf(sha256);
    if ((await hashFile(part)) !== sha256) {
      await remove(part);
      return { held: 0, whole: false };
    }
    await disk.rename(part, pathOf(sha256));
    await disk.syncFolder(folder);
    checked.add(sha256);
    return { held: size, whole: true };
  };

  return {
    /** All bundles and parts in the store. */
    list: async (): Promise<readonly (BundleState & { readonly sha256: string })[]> =>
      (await read()).map(({ sha256, whole, bytes }) => ({ sha256, whole, held: bytes })),
    /**
     * Appends a piece if it is the next one. Returns the bytes that the store has then; they are on the disk.
     * @throws Refused API_INVALID, UPDATE_BUNDLE_NO_ROOM
     */
    async put(sha256: string, piece: StoredPiece): Promise<BundleState> {
      checkName(sha256);
      if (piece.size > largestBundle)
        throw new Refused(413, "API_INVALID", `no bundle is larger than ${largestBundle} bytes`);
      if (piece.offset + piece.data.length > piece.size)
        throw new Refused(400, "API_INVALID", "a piece of a bundle reaches beyond its end");
      try {
        await ensurePrivateFolder(folder);
        if (piece.offset === 0) await makeRoom(sha256);
        return await oneByOne(sha256, () => append(sha256, piece));
      } catch (error) {
        const { code = "", message } = error as NodeJS.ErrnoException;
        throw ["ENOSPC", "EDQUOT", "EFBIG", "EROFS"].includes(code) ? noRoom(message) : error;
      }
    },
    /** Opens a complete bundle, verified before its first use; the caller closes the file. @throws Refused UPDATE_BUNDLE_UNKNOWN, API_INVALID */
    async open(sha256: string): Promise<{ readonly file: FileHandle; readonly size: number }> {
      checkName(sha256);
      if (!checked.has(sha256))
        await oneByOne(sha256, async () => {
          const found = checked.has(sha256) ? sha256 : await ifThere(hashFile(pathOf(sha256)));
          if (found === undefined) return;
          // A damaged file is removed; another controller or the bastion brings the bundle again.
          if (found === sha256) checked.add(sha256);
          else await remove(pathOf(sha256));
        });
      const file = await ifThere(openToRead(pathOf(sha256)));
      if (!file) throw unknown(sha256);
      return { file, size: (await file.stat()).size };
    },
  };
}

function checkName(sha256: string): void {
  if (!BundleSha256.safeParse(sha256).success)
    throw new Refused(400, "API_INVALID", "a bundle is called by its SHA-256 in lower-case hex");
}

function unknown(sha256: string): Refused {
  const hint = "a controller fetches the bundle of an update from another one by itself; else apply the update again";
  return new Refused(404, "UPDATE_BUNDLE_UNKNOWN", `this controller does not have the bundle ${sha256}`, hint);
}

function noRoom(why: string): Refused {
  return new Refused(
    507,
    "UPDATE_BUNDLE_NO_ROOM",
    why,
    "make room on the controller's disk; then the transfer goes on where it was",
  );
}

/** Serialises the work of each name, in the order of the calls. */
function queueByName(): <Result>(name: string, work: () => Promise<Result>) => Promise<Result> {
  const last = new Map<string, Promise<unknown>>();
  return (name, work) => {
    const done = (last.get(name) ?? Promise.resolve()).then(work, work);
    last.set(name, done);
    const forget = (): void => {
      if (last.get(name) === done) last.delete(name);
    };
    done.then(forget, forget);
    return done;
  };
}

function openToRead(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
}

async function freeBytesOf(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder);
  return bavail * bsize;
}
