import { existsSync } from "node:fs";
import { cutContainer, loopsOf, startContainer } from "./container.ts";
import { diskFile, type NodeRecord } from "./record.ts";
import { detachLoops, isRunning, killMachine } from "./processes.ts";
import type { LabPlace } from "./place.ts";
import { mustRun } from "./run-command.ts";
import { isNamed, startVm } from "./vm/vm.ts";

/** Whether a node runs and, if it is virtual, has its name: a killed command may have left it without one. */
export async function isUp(place: LabPlace, node: NodeRecord): Promise<boolean> {
  return (node.kind !== "vm" || isNamed(node)) && (await isRunning(place, node));
}

/** Starts a node that does not run; returns as soon as it boots. Throws `LAB_NODE_FAILED`. */
export async function startMachine(place: LabPlace, node: NodeRecord): Promise<void> {
  if (await isUp(place, node)) return;
  if (await isRunning(place, node)) await killMachine(place, node);
  for (const index of node.disks.keys()) await makeDisk(node, index);
  await (node.kind === "vm" ? startVm(place, node) : startContainer(place, node));
}

/** Ends a node as a power cut does: unsynced data is lost. */
export async function cutMachine(place: LabPlace, node: NodeRecord): Promise<void> {
  // A killed virtual machine loses its kernel's unwritten data; a container's kernel goes on.
  await (node.kind === "vm" ? killMachine(place, node) : cutContainer(place, node));
}

/** Kills a node and removes everything of it. */
export async function removeMachine(place: LabPlace, node: NodeRecord): Promise<void> {
  await killMachine(place, node);
  await detachLoops(`${node.folder}/`);
  await mustRun("rm", ["-rf", "--one-file-system", node.folder]);
}

/** The names that this machine has for a node's disks while it runs; a virtual machine's disks have none. */
export async function devicesOf(node: NodeRecord): Promise<string[]> {
  return node.kind === "vm" ? [] : (await loopsOf(node)).map((loop) => `/dev/${loop}`);
}

/** Makes a data disk that is not there yet: blank, and sparse. */
async function makeDisk(node: NodeRecord, index: number): Promise<void> {
  const path = diskFile(node, index);
  if (!existsSync(path)) await mustRun("truncate", ["-s", node.disks[index] ?? "0", path]);
}
