import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readlinkSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { makeTempDir, type TempDir } from "./temp-dir.ts";

const MiB = 1024 ** 2;

const links = "/dev/disk/by-id";

/** A loop device of this machine over a file, with a link in /dev/disk/by-id. Some kernels do not show its partitions. */
export interface LoopDisk {
  readonly device: string;
  readonly image: string;
  /** The link's name. */
  readonly byId: string;
  readonly size: number;
  /** Writes from byte 0 on. */
  write(bytes: Uint8Array): void;
  remove(): void;
}

/** Opens a disk of `size` bytes that begins with this content; undefined if this machine has no usable loop devices. */
export function openLoopDisk(folder: string, content: Uint8Array, size = 64 * MiB): LoopDisk | undefined {
  const image = join(folder, "image");
  writeFileSync(image, content);
  truncateSync(image, size);
  const { status, stdout } = spawnSync("losetup", ["-P", "-f", "--show", image], { encoding: "utf8" });
  if (status !== 0) return undefined;
  const device = stdout.trim();
  // Frees the device if this process is killed. The guard does not keep the device open, which would count as use.
  const guard = spawn("sh", ["-c", 'read -r word || losetup -d "$0"', device], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  guard.unref();
  const byId = basename(folder);
  const link = join(links, byId);
  mkdirSync(links, { recursive: true });
  removeLinksTo(device);
  symlinkSync(device, link);
  return {
    device,
    image,
    byId,
    size,
    write: (bytes) => void execFileSync("dd", [`of=${device}`, "conv=notrunc,fsync", "status=none"], { input: bytes }),
    remove: () => {
      rmSync(link, { force: true });
      // A test may have announced the partitions with partx(8), since some kernels do not find them.
      spawnSync("partx", ["-d", device]);
      execFileSync("losetup", ["-d", device]);
      guard.stdin.end("removed\n");
    },
  };
}

/** A blank disk for the tests of the calling `describe`, with the folder of its image; without loop devices the tests are skipped. */
export function useLoopDisk(label: string): () => LoopDisk & { readonly folder: string } {
  let folder: TempDir;
  let disk: LoopDisk | undefined;
  before(async function () {
    folder = await makeTempDir(label);
    disk = openLoopDisk(folder.path, new Uint8Array());
    if (disk === undefined) this.skip();
  });
  after(async () => {
    disk?.remove();
    await folder?.remove();
  });
  return () => ({ ...(disk as LoopDisk), folder: folder.path });
}

/** Removes links to a device that was free: a killed run left them. */
function removeLinksTo(device: string): void {
  for (const entry of readdirSync(links, { withFileTypes: true })) {
    const link = join(links, entry.name);
    if (entry.isSymbolicLink() && readlinkSync(link) === device) rmSync(link);
  }
}

/** A master boot record of partitions, each with its start and size in MiB. */
export function masterBootRecord(...partitions: readonly (readonly [number, number])[]): Buffer {
  const record = Buffer.alloc(512);
  for (const [index, [begin, size]] of partitions.entries()) {
    const at = 446 + 16 * index;
    record[at + 4] = 0x83;
    record.writeUInt32LE(begin * 2048, at + 8);
    record.writeUInt32LE(size * 2048, at + 12);
  }
  record.writeUInt16LE(0xaa55, 510);
  return record;
}
