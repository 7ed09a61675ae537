import { spawn, type ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { globSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeCertificates, type Certificates, type Holder } from "./certificates.ts";
import { openClient, type Client } from "./client.ts";
import { must, run } from "./commands.ts";
import { startHosts, type Host } from "./hosts.ts";

/** The built program of the nodes; KCORE_NODE_PROGRAM names another one. */
const program = process.env["KCORE_NODE_PROGRAM"] ?? join(import.meta.dirname, "../../dist/node-main.js");
/** The longest wait: more than any step takes on the busiest machine. */
const patienceMs = 120_000;
const port = 9090;
export const dcs = ["DC1", "DC1", "DC2", "DC2"] as const;
/** The index of the controller whose block device can be made to fail. */
export const failing = 3;

/** One controller: a real process on a host of its own. */
export interface Controller {
  readonly index: number;
  readonly id: string;
  readonly host: Host;
  readonly client: Client;
  /** The controller's state folder, as seen from this machine. */
  readonly db: string;
  /** @throws Error with its log if it does not begin to listen */
  readonly start: () => Promise<void>;
  readonly signal: (signal: NodeJS.Signals) => void;
  /** Resolves when it is gone. */
  readonly end: (signal?: NodeJS.Signals) => Promise<void>;
  /** Sets the controller's clock off by this much: “+3600s”. */
  readonly setClock: (offset: string) => Promise<void>;
  /** Another command of the same program on the host, with the controller's configuration. */
  readonly command: (words: readonly string[]) => Promise<{ readonly code: number | null; readonly output: string }>;
  readonly disk: Disk;
}

/** Faults of a controller's disk. */
export interface Disk {
  readonly fill: () => Promise<void>;
  readonly free: () => Promise<void>;
  /** Makes writes end in EIO; only for the controller {@link failing}. */
  readonly fail: () => Promise<void>;
  /** Mends the disk, like a new cable; the controller must have ended. */
  readonly mend: () => Promise<void>;
}

export interface Cluster {
  readonly controllers: readonly Controller[];
  readonly close: () => Promise<void>;
}

/** Founds a cluster of four controllers in two datacenters; resolves when all are ready and in step. */
export async function startCluster(count: number = dcs.length): Promise<Cluster> {
  const folder = await mkdtemp(join(tmpdir(), "kcore-checker-"));
  const started: Controller[] = [];
  let network: Awaited<ReturnType<typeof startHosts>> | undefined;
  const close = async (): Promise<void> => {
    await Promise.all(
      started.map(async (controller) => {
        controller.client.close();
        await controller.end("SIGKILL");
      }),
    );
    await network?.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    network = await startHosts(count);
    const certificates = await makeCertificates(folder, "checked");
    const operator = await certificates.issue("operator", "eve");
    for (const [index, host] of network.hosts.entries())
      started.push(await addController({ index, host, folder, certificates, operator, sponsor: started[0] }));
    await untilTrue("all are in step", async () => (await Promise.all(started.map(isInStep))).every(Boolean));
    return { controllers: started, close };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Plan {
  readonly index: number;
  readonly host: Host;
  readonly folder: string;
  readonly certificates: Certificates;
  readonly operator: Holder;
  readonly sponsor: Controller | undefined;
}

async function addController(plan: Plan): Promise<Controller> {
  const { index, host, certificates, operator, sponsor } = plan;
  const id = randomUUID();
  const own = await certificates.issue("controller", id, host.address);
  const dc = dcs[index] ?? "DC1";
  const address = `${host.address}:${port}`;
  const folder = join(plan.folder, `c${index}`);
  const files = { clock: join(folder, "clock"), config: join(folder, "controller.yaml"), db: join(folder, "db") };
  await mkdir(files.db, { recursive: true });
  await writeFile(files.clock, "+0s\n");
  const disk = await makeDisk(host, folder, index === failing);
  const config = {
    listenAddr: address,
    dbPath: join(files.db, "state"),
    tls: { caFile: certificates.caFile, certFile: own.certFile, keyFile: own.keyFile },
    replication: {
      controllerId: id,
      dcId: dc,
      advertise: address,
      ...(sponsor ? { join: [`${sponsor.host.address}:${port}`] } : {}),
    },
    ...(sponsor
      ? {}
      : {
          bootstrap: {
            cluster: certificates.cluster,
            operators: [{ name: "eve", spki: operator.spki }],
            controller: { spki: own.spki, address, dc },
          },
        }),
  };
  // JSON is YAML, too.
  await writeFile(files.config, JSON.stringify(config));
  const credentials = { ca: certificates.ca, cert: operator.cert, key: operator.key };
  const client = openClient({ host: host.address, port }, credentials);
  const controller = { index, id, host, client, disk, ...processOf({ host, files, db: config.dbPath }) };
  if (sponsor) await sponsor.client.post(`/v1/controllers/${id}/register`, { spki: own.spki, address, dc });
  try {
    if (!sponsor) {
      await must([...host.inside, "mkdir", "-m", "700", config.dbPath]);
      const { code, output } = await controller.command(["controller", "found"]);
      if (code !== 0) throw new Error(`no cluster was founded:\n${output}`);
    }
    await controller.start();
    await untilTrue(`controller ${index} is ready`, async () => (await client.get("/readyz")).body["ready"] === true);
    return controller;
  } catch (error) {
    await controller.end("SIGKILL");
    throw error;
  }
}

function processOf({
  host,
  files,
  db,
}: {
  readonly host: Host;
  readonly files: { readonly clock: string; readonly config: string };
  readonly db: string;
}): Omit<Controller, "index" | "id" | "host" | "client" | "disk"> {
  const library = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1")[0];
  if (library === undefined) throw new Error("libfaketime is missing: apt install faketime");
  const faketime = [`LD_PRELOAD=${library}`, "FAKETIME_NO_CACHE=1", "FAKETIME_DONT_FAKE_MONOTONIC=1"];
  const node = [process.execPath, "--disable-warning=ExperimentalWarning", program];
  let child: ChildProcess | undefined;
  let log = "";
  const isAlive = (): boolean => child !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    db: host.path(db),
    async start() {
      const before = log.length;
      const clock = [...faketime, `FAKETIME_TIMESTAMP_FILE=${files.clock}`];
      // The daemon dies with this process, in any case.
      const words = ["--pdeathsig", "KILL", ...host.inside, "env", ...clock, ...node];
      const daemon = spawn("setpriv", [...words, "controller", "serve", "--config", files.config], {
        stdio: ["ignore", "ignore", "pipe"],
      });
      child = daemon;
      daemon.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
      const isListening = (): boolean => log.indexOf('"the controller listens"', before) >= 0;
      await untilTrue(`controller ${files.config} listens`, () => Promise.resolve(isListening() || !isAlive()));
      if (!isListening()) throw new Error(`a controller did not start:\n${log.slice(before)}`);
    },
    signal: (signal) => void (isAlive() && child?.kill(signal)),
    async end(signal = "SIGTERM") {
      if (!child || !isAlive()) return;
      const gone = once(child, "exit");
      child.kill(signal);
      await gone;
    },
    setClock: (offset) => writeFile(files.clock, `${offset}\n`),
    async command(words) {
      const { code, stdout, stderr } = await run([...host.inside, ...node, ...words, "--config", files.config]);
      return { code, output: stdout + stderr };
    },
  };
}

/**
 * A small file system for one controller, mounted on its host only. With `canFail` it lies on a loop device over a sparse file. If the file
 * system below is full, the device lacks room that it promised, and fdatasync gets EIO.
 */
async function makeDisk(host: Host, folder: string, canFail: boolean): Promise<Disk> {
  const [db, below] = [join(folder, "db"), join(folder, "below")];
  const inside = (script: string): Promise<string> => must([...host.inside, "sh", "-ec", script]);
  const fillUp = (where: string): Promise<string> =>
    inside(
      `dd if=/dev/zero of=${where}/filler bs=64k 2>/dev/null || dd if=/dev/zero of=${where}/filler.2 bs=512 2>/dev/null || :`,
    );
  const remove = (where: string): Promise<string> => inside(`rm -f ${where}/filler ${where}/filler.2`);
  const mount = `mount -o loop ${below}/disk.img ${db}`;
  if (canFail) {
    const make = `mkfs.ext4 -q -m 0 -E nodiscard -O ^has_journal ${below}/disk.img`;
    await inside(
      `mkdir ${below}; mount -t tmpfs -o size=64m tmpfs ${below}; truncate -s 40M ${below}/disk.img; ${make}; ${mount}`,
    );
  } else await inside(`mount -t tmpfs -o size=64m tmpfs ${db}`);
  return {
    fill: async () => void (await fillUp(db)),
    free: async () => void (await remove(db)),
    async fail() {
      if (!canFail) throw new Error("this disk cannot fail");
      await fillUp(below);
    },
    async mend() {
      await remove(below);
      // The file system's own tables may lack failed writes, too.
      await inside(`umount ${db}; e2fsck -fy ${below}/disk.img >/dev/null || [ $? -lt 4 ]; ${mount}`);
    },
  };
}

async function isInStep({ client }: Controller): Promise<boolean> {
  const { body } = await client.get("/readyz");
  const peers = (body["peers"] ?? []) as readonly { readonly inStep: boolean }[];
  return body["ready"] === true && peers.length > 0 && peers.every(({ inStep }) => inStep);
}

/** Polls until the condition holds. @throws Error when it does not in time */
export async function untilTrue(what: string, holds: () => Promise<boolean>): Promise<number> {
  const began = performance.now();
  for (;;) {
    if (await holds()) return performance.now() - began;
    if (performance.now() - began > patienceMs) throw new Error(`not within ${patienceMs} ms: ${what}`);
    await sleep(20);
  }
}
