import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, rmSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";

const MiB = 1024 ** 2;

/** A disk of this machine: a file of 64 MiB, and a link of its own in /dev/disk/by-id. Not every kernel shows its partitions. */
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

/** Begins with this content. Undefined where this machine has no loop devices, or they are not for us. */
export function openLoopDisk(folder: string, content: Uint8Array): LoopDisk | undefined {
  const image = join(folder, "image");
  const size = 64 * MiB;
  writeFileSync(image, content);
  truncateSync(image, size);
  const { status, stdout } = spawnSync("losetup", ["-P", "-f", "--show", image], { encoding: "utf8" });
  if (status !== 0) return undefined;
  const device = stdout.trim();
  const byId = basename(folder);
  const link = join("/dev/disk/by-id", byId);
  mkdirSync("/dev/disk/by-id", { recursive: true });
  symlinkSync(device, link);
  return {
    device,
    image,
    byId,
    size,
    write: (bytes) => void execFileSync("dd", [`of=${device}`, "conv=notrunc,fsync", "status=none"], { input: bytes }),
    remove: () => {
      rmSync(link);
      execFileSync("losetup", ["-d", device]);
    },
  };
}

/** A master boot record of partitions, each by where it begins and what it has, in MiB. */
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
