import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdir, readFile, readlink, realpath, stat, statfs } from "node:fs/promises";
import { isIP } from "node:net";
import { availableParallelism, freemem, hostname, loadavg, networkInterfaces, totalmem } from "node:os";
import { dirname, join } from "node:path";
import type { ApiEndpoint } from "#api/endpoint.ts";
import type { RuntimeFacts } from "#api/runtime-facts.ts";
import { isThere } from "#base/file.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { NetworkFacts, Registration, StorageFacts, NodeUsage } from "#api/schemas.ts";
import type { AgentConfig } from "./agent-config.ts";

/** A machine's registration without the address, which depends on the controller. */
export type MachineFacts = Omit<Registration, "address">;

/** Gathers the facts with which this machine registers. */
export async function gatherFacts({
  nodeId,
  config,
  version,
}: {
  readonly nodeId: string;
  readonly config: AgentConfig;
  readonly version: string;
}): Promise<MachineFacts> {
  const [bootId, storage, nics, runtime] = await Promise.all([
    readBootId(),
    readStorage(config),
    readNics(),
    readRuntime(),
  ]);
  return {
    nodeId,
    hostname: config.hostname ?? hostname(),
    cpu: availableParallelism(),
    memory: totalmem(),
    labels: { ...config.labels, dc: config.dcId },
    dc: config.dcId,
    roles: config.roles,
    version,
    ...omitUndefined({ bootId, runtime }),
    net: { disableVxlan: config.disableVxlan, interfaces: [...nics] },
    storage,
  };
}

/** Whether two registrations agree, apart from free space, which changes all the time. */
export function isSameMachine(before: MachineFacts, after: MachineFacts): boolean {
  const { storage: { free: _before, ...storageBefore } = {}, ...restBefore } = before;
  const { storage: { free: _after, ...storageAfter } = {}, ...restAfter } = after;
  return JSON.stringify([restBefore, storageBefore]) === JSON.stringify([restAfter, storageAfter]);
}

/**
 * The machine's load. Of the file systems of `/` and `folder`, the fuller one counts. `inbox`: the file of the updater's
 * next order.
 */
export async function readUsage(folder: string, inbox: string): Promise<NodeUsage> {
  const [storeFree, orderUntaken, ...disks] = await Promise.all([
    readStoreFree(),
    readOrderUntaken(inbox),
    ...["/", folder].map(readDisk),
  ] as const);
  const [fuller] = disks
    .flatMap((disk) => disk ?? [])
    .toSorted((a, b) => b.diskUsed / b.diskSize - a.diskUsed / a.diskSize);
  // Node counts memory that could be freed at once as free (MemAvailable).
  return {
    load: loadavg()[0] ?? 0,
    memoryUsed: totalmem() - freemem(),
    ...fuller,
    ...omitUndefined({ storeFree, orderUntaken }),
  };
}

/** Seconds in which a healthy updater takes an order, even if its path unit has to start it first. */
const usualSeconds = 15;

async function readOrderUntaken(inbox: string): Promise<number | undefined> {
  const order = await stat(inbox).catch(() => undefined);
  const seconds = order && Math.round((Date.now() - order.mtimeMs) / 1000);
  return seconds !== undefined && seconds > usualSeconds ? seconds : undefined;
}

/** As df(1) counts: blocks reserved for root are neither used nor free. */
async function readDisk(path: string): Promise<{ readonly diskUsed: number; readonly diskSize: number } | undefined> {
  const found = await statfs(path).catch(() => undefined);
  if (!found || found.blocks === 0) return undefined;
  const { bsize, blocks, bfree, bavail } = found;
  const diskUsed = (blocks - bfree) * bsize;
  return { diskUsed, diskSize: diskUsed + bavail * bsize };
}

async function readBootId(): Promise<string | undefined> {
  return (await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => undefined))?.trim();
}

/** The address that this machine uses towards a controller. Connecting a datagram socket sends nothing. @throws KcoreError API_UNREACHABLE */
export async function addressTowards({ host, port }: ApiEndpoint): Promise<string> {
  const socket = createSocket(isIP(host) === 6 ? "udp6" : "udp4");
  try {
    const connected = once(socket, "connect", { signal: AbortSignal.timeout(5_000) });
    socket.connect(port, host);
    await connected;
    return socket.address().address;
  } catch (cause) {
    const message = `controller ${host} cannot be reached: ${(cause as Error).message}`;
    throw new KcoreError({ code: "API_UNREACHABLE", message }, { cause, exitCode: exitCodes.unreachable });
  } finally {
    socket.close();
  }
}

export type Nic = NonNullable<NetworkFacts["interfaces"]>[number];

/** The network interfaces of this machine, also without an address, ordered by name; not the loopback interface. */
export async function readNics(root = "/", addressesOf = networkInterfaces): Promise<readonly Nic[]> {
  const folder = join(root, "sys/class/net");
  const addresses = addressesOf();
  const names = new Set([...(await readdir(folder).catch(() => [])), ...Object.keys(addresses)]);
  names.delete("lo");
  return Promise.all(
    [...names].toSorted().map(async (name) => {
      const mac = await readFile(join(folder, name, "address"), "utf8").catch(() => "");
      const own = (addresses[name] ?? []).map(({ cidr, address }) => cidr ?? address);
      return { name, ...(mac.trim() !== "" && { mac: mac.trim() }), addresses: own };
    }),
  );
}

const profile = "/nix/var/nix/profiles/kcore";

/** The runtime of this node's profile; undefined without such a profile. */
async function readRuntime(): Promise<RuntimeFacts | undefined> {
  try {
    const [id, link] = await Promise.all([realpath(profile), readlink(profile)]);
    const number = /-(\d+)-link$/.exec(link)?.[1];
    return {
      id,
      canUpdate: await allExist(`${profile}-updater/bin/kcore-node`, "/etc/systemd/system/kcore-updater.path"),
      nixos: await allExist("/etc/NIXOS"),
      ...omitUndefined({ generation: number === undefined ? undefined : Number(number), arch: await archOf(id) }),
    };
  } catch {
    return undefined;
  }
}

async function allExist(...paths: readonly string[]): Promise<boolean> {
  return (await Promise.all(paths.map((path) => isThere(path)))).every(Boolean);
}

async function archOf(id: string): Promise<string | undefined> {
  const { arch } = JSON.parse(await readFile(`${id}/manifest.json`, "utf8")) as { readonly arch?: unknown };
  return typeof arch === "string" ? arch : undefined;
}

/** Free bytes of the Nix store's file system. */
async function readStoreFree(): Promise<number | undefined> {
  const found = await statfs("/nix/store").catch(() => undefined);
  return found && found.bsize * found.bavail;
}

export type DiskFacts = NonNullable<StorageFacts["disks"]>[number];

/** Block devices that are no disks (Documentation/admin-guide/devices.txt). */
const notDisks = /^(?:loop|ram|zram|dm-|md|sr|fd|nbd|zd)/;

/** The disks of this machine by sysfs(5), ordered by name; `root` is `/` except in tests. */
export async function readDisks(root = "/"): Promise<readonly DiskFacts[]> {
  const names = (await readdir(join(root, "sys/block")).catch(() => [])).filter((name) => !notDisks.test(name));
  const mounted = await mountedDevices(root);
  const disks = await Promise.all(names.toSorted().map((name) => describeDisk(root, name, mounted)));
  return disks.filter((disk) => disk.size > 0);
}

/** The node's storage for volumes, with the space of a folder, and all disks. */
export async function readStorage({ storage }: AgentConfig, root = "/"): Promise<StorageFacts> {
  const { backend, filesystemVolumeDir, lvm, zfs } = storage;
  const space = backend === "filesystem" ? await spaceOf(filesystemVolumeDir) : {};
  const named = {
    ...(backend === "lvm" && { volumeGroup: lvm.vgName, volumePrefix: lvm.lvPrefix }),
    ...(backend === "zfs" && { pool: zfs.poolName, datasetPrefix: zfs.datasetPrefix }),
  };
  const known = Object.entries(named).filter(([, value]) => value !== undefined);
  return { backend, ...Object.fromEntries(known), ...space, disks: [...(await readDisks(root))] };
}

async function describeDisk(root: string, name: string, mounted: ReadonlySet<string>): Promise<DiskFacts> {
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

/** Size and free space of a folder's file system, also before the folder exists; empty if they cannot be read. */
async function spaceOf(folder: string): Promise<{ readonly capacity?: number; readonly free?: number }> {
  try {
    const { blocks, bavail, bsize } = await statfs(folder);
    return { capacity: blocks * bsize, free: bavail * bsize };
  } catch {
    return folder === "/" || folder === "." ? {} : spaceOf(dirname(folder));
  }
}
