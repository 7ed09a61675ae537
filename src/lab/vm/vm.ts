import { createHash, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { poll } from "#base/wait.ts";
import { cableOf, healCable } from "../bridge.ts";
import { diskFile, type NodeRecord } from "../record.ts";
import { withPrefix, type LabPlace } from "../place.ts";
import { removeRemains, failedStart, nodeGroup, isRunning, killMachine, nodeFailed } from "../processes.ts";
import { sourcesLine } from "../repository.ts";
import { serialOf } from "../roster-text.ts";
import { mustRun } from "../run-command.ts";
import { runOnConsole } from "./console-shell.ts";
import { diskDevice, sockets, startQemu, type Qemu } from "./qemu.ts";
import { openQmp, type Qmp } from "./qmp.ts";
import { makeRoot } from "./vm-image.ts";
import { startInGroup } from "../cgroup.ts";

/**
 * Starts a virtual machine that does not run. At its first start it resumes the saved state of all machines, which takes
 * seconds; later it boots from its own root. With a TPM, which the saved state lacks, it boots at its first start, too. A
 * live machine boots from its first disk once that disk has a boot loader; until then each start is a first start, as of a
 * live medium. Throws `LAB_NODE_FAILED`, `LAB_LEFTOVERS`, `LAB_COMMAND_FAILED`.
 */
export async function startVm(place: LabPlace, node: NodeRecord): Promise<void> {
  const { folder } = node;
  await removeRemains(place, node);
  for (const name of Object.values(sockets)) await rm(join(folder, name), { force: true });
  const [image = "", golden = "", zfs] = node.images;
  const isLive = node.live === true;
  const isNew = isLive ? !(await isBootable(node)) : !hasName(node);
  if (isNew) {
    await rm(nameMark(node), { force: true });
    await rm(join(folder, "root.qcow2"), { force: true });
    await makeRoot(folder, join(golden, "root.qcow2"), "qcow2");
  }
  const cable = cableOf(place, node.number);
  const disks = qemuDisks(node);
  const mac = macOf(place, node);
  // A live machine gets no kernel from the lab: its state has one, and the next boot finds one on its disk.
  const resumes = isNew && node.tpm !== true;
  const qemu: Qemu = { folder, ...(isLive ? {} : { image }), id: node.id, cable, mac, disks: resumes ? [] : disks };
  const group = nodeGroup(place, node);
  const more = resumes
    ? { state: join(golden, "state") }
    : node.tpm === true
      ? { tpm: await startTpmOrKill(place, node) }
      : {};
  const lives = await startQemu(group, { ...qemu, ...more });
  try {
    await withMonitor(node, lives, async (monitor) => {
      await mustRun("ip", ["link", "set", cable, "up"]);
      await healCable(place, cable);
      if (!isNew) return;
      if (resumes) {
        await resumeMachine(monitor);
        for (const disk of disks) await plug(monitor, disk);
      }
      const identity = ["/usr/local/lib/lab/identity", ...(await identityArguments(place, node))].join(" ");
      const onConsole = (line: string): Promise<string> =>
        runOnConsole(join(folder, sockets.console), line, { timeout: 300_000, lives });
      if (!resumes) await onConsole("systemctl is-system-running --wait");
      if (zfs !== undefined) await unpackArchive(monitor, join(zfs, "zfs.tar"), onConsole);
      await onConsole(identity);
      await mustRun("touch", [nameMark(node)]);
    });
  } catch (error) {
    if (!(await lives())) throw await failedStart(place, node, "qemu.log");
    await killMachine(place, node);
    throw error;
  }
}

/** Starts the machine's TPM and returns its socket; kills the machine's processes after a failure. */
async function startTpmOrKill(place: LabPlace, node: NodeRecord): Promise<string> {
  try {
    return await startTpm(nodeGroup(place, node), node.folder);
  } catch (error) {
    await killMachine(place, node);
    throw error;
  }
}

/** Unpacks an archive into a new machine's root, through a disk, so that all machines can share one saved state. */
async function unpackArchive(monitor: Qmp, file: string, onConsole: (line: string) => Promise<string>): Promise<void> {
  const serial = "archive";
  const disk = `/dev/disk/by-id/virtio-${serial}`;
  await plug(monitor, { file, serial, isReadOnly: true });
  await onConsole(`until [ -b ${disk} ]; do sleep 0.1; done; tar -x -C / --keep-directory-symlink -f ${disk}`);
  await onConsole("systemctl daemon-reload && udevadm control --reload && sync");
  await unplug(monitor, serial);
}

/** Whether a virtual machine has its name and keys; without them it is a copy of the saved state. */
export function hasName(node: NodeRecord): boolean {
  return existsSync(nameMark(node));
}

function nameMark({ folder }: NodeRecord): string {
  return join(folder, "named");
}

/** Whether the first sector of the first disk holds a program, which the firmware would run. */
async function isBootable(node: NodeRecord): Promise<boolean> {
  const disk = await open(diskFile(node, 0));
  try {
    const { buffer } = await disk.read(Buffer.alloc(bootCode), 0, bootCode, 0);
    return buffer.some((byte) => byte !== 0);
  } finally {
    await disk.close();
  }
}

/** Bytes of a master boot record that are code. */
const bootCode = 440;

export interface DiskMove {
  /** The disk's index in the node's record. */
  readonly index: number;
  readonly to: "in" | "out";
  /** The serial that the node sees; absent: the disk's own. */
  readonly serial?: string | undefined;
}

/** Plugs a disk into a running machine, or unplugs it. Throws `LAB_NODE_FAILED`. */
export async function moveDisk(place: LabPlace, node: NodeRecord, { index, to, serial }: DiskMove): Promise<void> {
  const disk = qemuDisks(node)[index];
  if (!disk) throw nodeFailed({ message: `${node.name} has no disk ${index}` });
  await withMonitor(
    node,
    () => isRunning(place, node),
    async (monitor) => {
      if (to === "in") await plug(monitor, { ...disk, id: disk.serial, ...(serial === undefined ? {} : { serial }) });
      else await unplug(monitor, disk.serial);
    },
  );
}

async function withMonitor<T>(
  { folder }: NodeRecord,
  lives: () => Promise<boolean>,
  work: (monitor: Qmp) => Promise<T>,
): Promise<T> {
  const monitor = await openQmp(join(folder, sockets.monitor), lives);
  try {
    return await work(monitor);
  } finally {
    monitor.close();
  }
}

/** Lets a machine run that was stopped when it was saved. */
async function resumeMachine(monitor: Qmp): Promise<void> {
  for (;;) {
    const { status } = (await monitor.execute("query-status")) as { status: string };
    if (status === "running") return;
    if (status !== "inmigrate") await monitor.execute("cont");
  }
}

async function plug(monitor: Qmp, disk: Qemu["disks"][number]): Promise<void> {
  const { block, device } = diskDevice(disk);
  await monitor.execute("blockdev-add", block);
  await monitor.execute("device_add", device);
}

async function unplug(monitor: Qmp, serial: string): Promise<void> {
  await monitor.execute("device_del", { id: serial });
  await monitor.event("DEVICE_DELETED", ({ device }) => device === serial);
  await monitor.execute("blockdev-del", { "node-name": `d-${serial}` });
}

function qemuDisks(node: NodeRecord): Qemu["disks"] {
  return node.disks.map((_, index) => ({
    file: diskFile(node, index),
    serial: serialOf(node.name, index),
    isFirst: node.live === true && index === 0,
  }));
}

function macOf({ net }: LabPlace, { number }: NodeRecord): string {
  const bytes = [...createHash("sha256").update(net).digest().subarray(0, 2), number];
  return ["52:54:00", ...bytes.map((byte) => byte.toString(16).padStart(2, "0"))].join(":");
}

/** The arguments of the script files/vm/usr/local/lib/lab/identity. */
async function identityArguments(place: LabPlace, node: NodeRecord): Promise<string[]> {
  const file = async (path: string): Promise<string> => (await readFile(path)).toString("base64");
  const now = String(Math.floor(Date.now() / 1000));
  const sources = Buffer.from(`${sourcesLine(place)}\n`).toString("base64");
  const seed = randomBytes(32).toString("hex");
  const key = await file(join(node.folder, "hostkey"));
  const publicKey = await file(join(node.folder, "hostkey.pub"));
  const authorized = await file(join(place.home, "id.pub"));
  const mac = macOf(place, node);
  return [node.name, withPrefix(place, node.address), mac, node.id, now, sources, seed, key, publicKey, authorized];
}

/** Milliseconds that a TPM may take to open its socket. */
const tpmLimitMs = 30_000;

/**
 * Starts a machine's TPM 2.0 (swtpm(8)) in the machine's cgroup and returns the socket for QEMU. The TPM's memory is `tpm` in the
 * machine's folder; a machine that loses it has another TPM. The TPM ends with QEMU. Throws `LAB_NODE_FAILED`.
 */
async function startTpm(group: string, folder: string): Promise<string> {
  const state = join(folder, "tpm");
  const socket = join(folder, "tpm-ctl");
  const log = join(folder, "tpm.log");
  await mkdir(state, { recursive: true, mode: 0o700 });
  await rm(socket, { force: true });
  const control = ["--ctrl", `type=unixio,path=${socket},mode=0600`, "--terminate"];
  const command = ["swtpm", "socket", "--tpm2", "--tpmstate", `dir=${state},mode=0600`, ...control];
  const lives = await startInGroup(group, command, log);
  await poll(() => existsSync(socket) || !lives(), { everyMs: 20, limitMs: tpmLimitMs });
  if (!existsSync(socket)) throw nodeFailed({ message: "the TPM does not start", hint: `look at ${log}` });
  return socket;
}
