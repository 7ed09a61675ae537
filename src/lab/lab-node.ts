import { join } from "node:path";
import type { RunTasks, Task } from "#base/tasks.ts";
import type { KcoreError } from "#errors/problem.ts";
import { cableOf, cutCable, healCable, isCut } from "./bridge.ts";
import {
  consoleLogOf,
  diskFile,
  lockOfNode,
  type Images,
  type NodeKind,
  type NodeRecord,
  type NodeSpec,
} from "./record.ts";
import { withLock } from "./lock.ts";
import { cutMachine, devicesOf, isMachineUp, startMachine } from "./machine.ts";
import { defaultLab, type LabPlace } from "./place.ts";
import { isRunning, nodeFailed } from "./processes.ts";
import { serialOf } from "./roster-text.ts";
import { runOverSsh, identityFileOf, sshArguments, waitForSsh } from "./ssh.ts";
import { runOnConsole } from "./vm/console-shell.ts";
import { sockets } from "./vm/qemu.ts";
import { dial } from "./vm/qmp.ts";
import { moveDisk, type DiskMove } from "./vm/vm.ts";

/** A data disk of a node, by its names for the roster and for tests. */
interface LabDisk {
  readonly serial: string;
  /** The disk's stable name on the node. */
  readonly byId: string;
  /** As in the node's spec: “1G”. */
  readonly size: string;
  /** The sparse file on this machine. */
  readonly image: string;
  /** The disk's device in a running container and on this machine, such as /dev/loop3; absent for any other node. */
  readonly device?: string;
}

/** A node's state as `list` shows it. */
export interface LabNodeStatus {
  readonly name: string;
  readonly kind: NodeKind;
  readonly address: string;
  readonly id: string;
  readonly running: boolean;
  /** Whether `cut` has taken the node off the network. */
  readonly cut: boolean;
}

/**
 * One node of a lab. Its methods throw `LAB_NODE_FAILED`, `LAB_COMMAND_FAILED`, `LAB_BUSY`, `LAB_LEFTOVERS`; `start` also throws as
 * `Prepare` does.
 */
export type LabNode = Awaited<ReturnType<typeof labNode>>;

/**
 * Makes this machine, the images for such nodes and the lab's network ready, then does `work` while no other command can take the lab
 * down.
 */
export type Prepare = <T>(
  nodes: readonly Pick<NodeSpec, "kind" | "release" | "nix" | "zfs" | "tpm">[],
  work: (images: Images) => Promise<T>,
) => Promise<T>;

/** Makes the node of a record, for product code and tests. */
export async function labNode(place: LabPlace, record: NodeRecord, prepare: Prepare, tasks: RunTasks) {
  const cable = cableOf(place, record.number);
  const locked = <T>(work: () => Promise<T>): Promise<T> => withLock(place.home, lockOfNode(place, record), 120, work);
  const requireRunning = async (): Promise<void> => {
    if (!(await isRunning(place, record))) throw notRunning(place, record);
  };
  const { name, kind, address, id, hostKey } = record;
  const secondLine = async (): Promise<string> => {
    await requireRunning();
    if (kind !== "vm") throw noVm(record, "it has no second line: use kcore lab ssh");
    return join(record.folder, sockets.console);
  };
  return {
    name,
    kind,
    address,
    port: 22,
    id,
    hostKey,
    identityFile: identityFileOf(place),
    disks: await labDisks(place, record),
    isRunning: () => isRunning(place, record),
    /** Throws `LAB_NODE_FAILED`, with the command that starts the node, if the node does not run. */
    requireRunning,
    /** Runs a command line in the login shell of root, or of `ops`, `opspw`. */
    exec: (command: string, options?: Parameters<typeof runOverSsh>[3]) => runOverSsh(place, record, command, options),
    /** Takes the node off the network; open connections hang, as with a dead switch port. */
    cut: () => locked(async () => requireRunning().then(() => cutCable(cable))),
    /** Puts the node back on the network. */
    heal: () => locked(async () => requireRunning().then(() => healCable(place, cable))),
    /** Ends the node as a power cut does: data that was not synced is lost. */
    powerCut: () => locked(() => cutMachine(place, record)),
    /** Starts the node after a power cut or poweroff, and waits until ssh answers. */
    start: async () => {
      await prepare([record], async () => {});
      await tasks([startTask(place, record)]);
    },
    /** The file of the console's output since the node was made. */
    consoleLog: consoleLogOf(record),
    /** Connects to root's shell on a running virtual machine's second serial line, which needs no network. */
    consoleShell: async () => dial(await secondLine(), () => isRunning(place, record)),
    /** Runs one command line in the shell of `consoleShell` and returns its output. */
    onConsole: async (command: string) =>
      runOnConsole(await secondLine(), command, { timeout: 300_000, lives: () => isRunning(place, record) }),
    /** Takes a disk out of a running virtual machine. */
    unplug: (index: number) => locked(() => moveVmDisk(place, record, { index, to: "out" })),
    /** Puts a disk back into a running virtual machine, with another serial if one is given. */
    plug: (index: number, serial?: string) => locked(() => moveVmDisk(place, record, { index, to: "in", serial })),
    /** Waits until ssh answers, and if `notBoot` is given, from another boot than that; returns the boot_id. */
    ready: (options?: { timeout?: number; notBoot?: string }) => waitForSsh(place, record, options),
    /** Arguments for ssh(1), of which the last is USER@ADDRESS. */
    sshArguments: (user?: string) => sshArguments(place, record, user),
  };
}

function notRunning(place: LabPlace, { name }: NodeRecord): KcoreError {
  const lab = place.name === defaultLab ? "" : ` --name ${place.name}`;
  return nodeFailed({ message: `${name} does not run`, hint: `kcore lab start${lab} ${name}` });
}

function noVm({ name }: NodeRecord, so: string): KcoreError {
  return nodeFailed({ message: `${name} is no virtual machine: ${so}` });
}

async function moveVmDisk(place: LabPlace, node: NodeRecord, move: DiskMove): Promise<void> {
  if (node.kind !== "vm") throw noVm(node, "its disks cannot be moved");
  if (!(await isRunning(place, node))) throw notRunning(place, node);
  await moveDisk(place, node, move);
}

/** The task that starts a node unless it runs, and waits until ssh answers. */
export function startTask(place: LabPlace, record: NodeRecord): Task {
  return {
    title: `starting ${record.name}`,
    work: async () => {
      const isRunningAlready = await isMachineUp(place, record);
      if (!isRunningAlready)
        await withLock(place.home, lockOfNode(place, record), 120, () => startMachine(place, record));
      await waitForSsh(place, record);
      return `${isRunningAlready ? "runs already, " : ""}${record.address}`;
    },
  };
}

export async function nodeStatus(place: LabPlace, record: NodeRecord): Promise<LabNodeStatus> {
  const { name, kind, address, id } = record;
  return {
    name,
    kind,
    address,
    id,
    running: await isRunning(place, record),
    cut: isCut(cableOf(place, record.number)),
  };
}

async function labDisks(place: LabPlace, record: NodeRecord): Promise<LabDisk[]> {
  const devices = (await isRunning(place, record)) ? await devicesOf(record) : [];
  const link = record.kind === "vm" ? "virtio" : "lab";
  return record.disks.map((size, index) => {
    const serial = serialOf(record.name, index);
    const device = devices[index];
    return {
      serial,
      byId: `/dev/disk/by-id/${link}-${serial}`,
      size,
      image: diskFile(record, index),
      ...(device === undefined ? {} : { device }),
    };
  });
}
