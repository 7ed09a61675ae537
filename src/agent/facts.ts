import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readdir, readFile, readlink, realpath, stat, statfs } from "node:fs/promises";
import { isIP } from "node:net";
import { availableParallelism, freemem, hostname, loadavg, networkInterfaces, totalmem } from "node:os";
import { join } from "node:path";
import type { z } from "zod";
import type { Endpoint } from "#api/endpoint.ts";
import type { RuntimeFacts } from "#api/runtime-facts.ts";
import { isThere } from "#base/file.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { Network, Registration, Usage } from "#api/schemas.ts";
import type { AgentConfig } from "./agent-config.ts";
import { readStorage } from "./disks.ts";

/** A machine's registration without the address, which depends on the controller. */
export type Facts = Omit<Registration, "address">;

/** Looks at this machine. */
export async function gatherFacts({
  nodeId,
  config,
  version,
}: {
  readonly nodeId: string;
  readonly config: AgentConfig;
  readonly version: string;
}): Promise<Facts> {
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

/** Whether two looks agree, apart from free space, which changes all the time. */
export function isSameMachine(before: Facts, after: Facts): boolean {
  const { storage: { free: _before, ...storageBefore } = {}, ...restBefore } = before;
  const { storage: { free: _after, ...storageAfter } = {}, ...restAfter } = after;
  return JSON.stringify([restBefore, storageBefore]) === JSON.stringify([restAfter, storageAfter]);
}

/**
 * The machine's load; of the disks of root and of this folder, the fuller one counts. `inbox`: the file of the
 * updater's next order.
 */
export async function readUsage(folder: string, inbox: string): Promise<Usage> {
  const [storeFree, orderUntaken, ...disks] = await Promise.all([
    readStoreFree(),
    readUntaken(inbox),
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

/** Seconds in which a healthy updater takes an order, even if its path unit has to start the updater first. */
const takenWithin = 15;

async function readUntaken(inbox: string): Promise<number | undefined> {
  const order = await stat(inbox).catch(() => undefined);
  const seconds = order && Math.round((Date.now() - order.mtimeMs) / 1000);
  return seconds !== undefined && seconds > takenWithin ? seconds : undefined;
}

/** As df(1): blocks reserved for root are not free. */
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

/** The address this machine uses towards a controller; connecting a datagram socket sends nothing. @throws KcoreError API_UNREACHABLE */
export async function addressTowards({ host, port }: Endpoint): Promise<string> {
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

export type Nic = NonNullable<z.infer<typeof Network>["interfaces"]>[number];

/** The network interfaces of this machine without loopback, by name; also those that have no address. */
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

/** The runtime of this node's profile; undefined: there is no such profile. */
async function readRuntime(): Promise<RuntimeFacts | undefined> {
  try {
    const [id, link] = await Promise.all([realpath(profile), readlink(profile)]);
    const number = /-(\d+)-link$/.exec(link)?.[1];
    return {
      id,
      // The updater has a runtime of its own, and systemd starts it when an order comes.
      canUpdate: await areThere(`${profile}-updater/bin/kcore-node`, "/etc/systemd/system/kcore-updater.path"),
      nixos: await areThere("/etc/NIXOS"),
      ...omitUndefined({ generation: number === undefined ? undefined : Number(number), arch: await archOf(id) }),
    };
  } catch {
    return undefined;
  }
}

async function areThere(...paths: readonly string[]): Promise<boolean> {
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
