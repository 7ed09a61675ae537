import { readdir, readFile, statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { z } from "zod";
import type { Storage } from "#api/schemas.ts";
import type { AgentConfig } from "./agent-config.ts";

type StorageFacts = z.infer<typeof Storage>;
export type Disk = NonNullable<StorageFacts["disks"]>[number];

/** Block devices that are no disks (Documentation/admin-guide/devices.txt). */
const notDisks = /^(?:loop|ram|zram|dm-|md|sr|fd|nbd|zd)/;

/** The disks of this machine by sysfs(5), in the order of their names; `root` is `/` except in tests. */
export async function readDisks(root = "/"): Promise<readonly Disk[]> {
  const names = (await readdir(join(root, "sys/block")).catch(() => [])).filter((name) => !notDisks.test(name));
  const mounted = await mountedDevices(root);
  const disks = await Promise.all(names.toSorted().map((name) => readDisk(root, name, mounted)));
  return disks.filter((disk) => disk.size > 0);
}

/** The node's storage for volumes, and its room. */
export async function readStorage({ storage }: AgentConfig, root = "/"): Promise<StorageFacts> {
  const { backend, filesystemVolumeDir, lvm, zfs } = storage;
  const room = backend === "filesystem" ? await roomOf(filesystemVolumeDir) : {};
  const named = {
    ...(backend === "lvm" && { volumeGroup: lvm.vgName, volumePrefix: lvm.lvPrefix }),
    ...(backend === "zfs" && { pool: zfs.poolName, datasetPrefix: zfs.datasetPrefix }),
  };
  const known = Object.entries(named).filter(([, value]) => value !== undefined);
  return { backend, ...Object.fromEntries(known), ...room, disks: [...(await readDisks(root))] };
}

async function readDisk(root: string, name: string, mounted: ReadonlySet<string>): Promise<Disk> {
  const folder = join(root, "sys/block", name);
  const text = (file: string): Promise<string> =>
    readFile(join(folder, file), "utf8").then(
      (content) => content.trim().slice(0, 253),
      () => "",
    );
  const [sectors, model, serial, rotational, number, entries, holders] = await Promise.all([
    text("size"),
    text("device/model"),
    text("device/serial"),
    text("queue/rotational"),
    text("dev"),
    readdir(folder).catch(() => []),
    readdir(join(folder, "holders")).catch(() => []),
  ]);
  const parts = entries.filter((entry) => entry.startsWith(name));
  return {
    path: `/dev/${name.replaceAll("!", "/")}`,
    // Sectors of 512 bytes, also where the disk has larger ones (sysfs-block).
    size: Number(sectors) * 512 || 0,
    ...(model !== "" && { model }),
    ...(serial !== "" && { serial }),
    type: typeOf(name, rotational),
    used: parts.length > 0 || holders.length > 0 || (number !== "" && mounted.has(number)),
  };
}

function typeOf(name: string, rotational: string): string {
  if (name.startsWith("nvme")) return "nvme";
  if (/^(?:vd|xvd)/.test(name)) return "virtual";
  return rotational === "1" ? "hdd" : "ssd";
}

/** `major:minor` of mounted devices (proc_pid_mountinfo(5)). */
async function mountedDevices(root: string): Promise<ReadonlySet<string>> {
  const text = await readFile(join(root, "proc/self/mountinfo"), "utf8").catch(() => "");
  return new Set(text.split("\n").map((line) => line.split(" ")[2] ?? ""));
}

/** The room of a folder's file system, also before the folder exists; empty if it cannot be read. */
async function roomOf(folder: string): Promise<{ readonly capacity?: number; readonly free?: number }> {
  try {
    const { blocks, bavail, bsize } = await statfs(folder);
    return { capacity: blocks * bsize, free: bavail * bsize };
  } catch {
    return folder === "/" || folder === "." ? {} : roomOf(dirname(folder));
  }
}
