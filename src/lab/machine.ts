import { existsSync } from "node:fs";
import { cutContainer, loopsOf, startContainer } from "./container.ts";
import { diskFile, type NodeRecord } from "./record.ts";
import { detachLoops, isRunning, killMachine } from "./processes.ts";
import type { LabPlace } from "./place.ts";
import { mustRun } from "./run-command.ts";
import { hasName, startVm } from "./vm/vm.ts";

/** Whether a node runs. A virtual machine without its name does not count: a killed command may have left it so. */
export async function isMachineUp(place: LabPlace, node: NodeRecord): Promise<boolean> {
  return (node.kind !== "vm" || hasName(node)) && (await isRunning(place, node));
}

/** Starts a node unless it runs; returns before ssh answers. Throws `LAB_NODE_FAILED`, `LAB_LEFTOVERS`, `LAB_COMMAND_FAILED`. */
export async function startMachine(place: LabPlace, node: NodeRecord): Promise<void> {
  if (await isMachineUp(place, node)) return;
  if (await isRunning(place, node)) await killMachine(place, node);
  for (const index of node.disks.keys()) await makeDisk(node, index);
  await (node.kind === "vm" ? startVm(place, node) : startContainer(place, node));
}

/** Ends a node as a power cut does: unsynced data is lost. */
export async function cutMachine(place: LabPlace, node: NodeRecord): Promise<void> {
  // A killed virtual machine loses its kernel's unwritten data; a container's kernel goes on.
  await (node.kind === "vm" ? killMachine(place, node) : cutContainer(place, node));
}

/** Kills a node and removes its devices and files. */
export async function removeMachine(place: LabPlace, node: NodeRecord): Promise<void> {
  await killMachine(place, node);
  await detachLoops(`${node.folder}/`);
  await mustRun("rm", ["-rf", "--one-file-system", node.folder]);
}

/** The devices on this machine that are a running node's disks; none for a virtual machine, which reads its files. */
export async function devicesOf(node: NodeRecord): Promise<string[]> {
  return node.kind === "vm" ? [] : (await loopsOf(node)).map((loop) => `/dev/${loop}`);
}

/** Makes a data disk, blank and sparse, unless it is there. */
async function makeDisk(node: NodeRecord, index: number): Promise<void> {
  const path = diskFile(node, index);
  if (!existsSync(path)) await mustRun("truncate", ["-s", node.disks[index] ?? "0", path]);
}
