import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFile, stat, statfs } from "node:fs/promises";
import { isIP } from "node:net";
import { availableParallelism, freemem, hostname, loadavg, totalmem } from "node:os";
import type { Endpoint } from "#api/endpoint.ts";
import { defined } from "#optional/defined.ts";
import { exitCodes, KcoreError } from "#errors/problem.ts";
import type { Registration, Usage } from "#api/schemas.ts";
import type { AgentConfig } from "./agent-config.ts";
import { readStorage } from "./disks.ts";
import { readNics } from "./nics.ts";
import { readRuntime, readStoreFree } from "./runtime-facts.ts";

/** What a machine tells when it registers, but for the address, which depends on whom it tells. */
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
    ...defined({ bootId, runtime }),
    net: { disableVxlan: config.disableVxlan, interfaces: [...nics] },
    storage,
  };
}

/** Whether two looks differ in what is worth telling: free space and the like change all the time. */
export function isSameMachine(before: Facts, after: Facts): boolean {
  const { storage: { free: _before, ...storageBefore } = {}, ...restBefore } = before;
  const { storage: { free: _after, ...storageAfter } = {}, ...restAfter } = after;
  return JSON.stringify([restBefore, storageBefore]) === JSON.stringify([restAfter, storageAfter]);
}

/** How busy this machine is; of the root's disk and that of this folder, the fuller one counts. `inbox`: the file of the updater's next order. */
export async function readUsage(folder: string, inbox: string): Promise<Usage> {
  const [storeFree, orderUntaken, ...disks] = await Promise.all([
    readStoreFree(),
    readUntaken(inbox),
    ...["/", folder].map(readDisk),
  ] as const);
  const [fuller] = disks
    .flatMap((disk) => disk ?? [])
    .toSorted((a, b) => b.diskUsed / b.diskSize - a.diskUsed / a.diskSize);
  // Node counts what could be freed at once as free (MemAvailable).
  return {
    load: loadavg()[0] ?? 0,
    memoryUsed: totalmem() - freemem(),
    ...fuller,
    ...defined({ storeFree, orderUntaken }),
  };
}

/** Seconds in which a healthy updater takes an order, even if its path unit has to start the updater first. */
const takenWithin = 15;

async function readUntaken(inbox: string): Promise<number | undefined> {
  const seconds = await stat(inbox).then(
    ({ mtimeMs }) => Math.round((Date.now() - mtimeMs) / 1000),
    () => undefined,
  );
  return seconds !== undefined && seconds > takenWithin ? seconds : undefined;
}

/** As df(1) counts: what only root may take is not free. */
async function readDisk(path: string): Promise<{ readonly diskUsed: number; readonly diskSize: number } | undefined> {
  const told = await statfs(path).catch(() => undefined);
  if (!told || told.blocks === 0) return undefined;
  const { bsize, blocks, bfree, bavail } = told;
  const diskUsed = (blocks - bfree) * bsize;
  return { diskUsed, diskSize: diskUsed + bavail * bsize };
}

async function readBootId(): Promise<string | undefined> {
  return readFile("/proc/sys/kernel/random/boot_id", "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
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
