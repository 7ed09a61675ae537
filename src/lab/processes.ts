import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { poll } from "#base/wait.ts";
import { cableOf, removeCable } from "./bridge.ts";
import { killAll, processesOf, removeGroup } from "./cgroup.ts";
import type { LabPlace } from "./place.ts";
import type { NodeRecord } from "./record.ts";
import { endLines, mustRun, runCommand } from "./run-command.ts";

/** The cgroup of all of a node's processes. */
export function nodeGroup({ group }: LabPlace, { name }: NodeRecord): string {
  return `${group}/${name}`;
}

/** Whether a process of the node runs. */
export async function isRunning(place: LabPlace, node: NodeRecord): Promise<boolean> {
  return (await processesOf(nodeGroup(place, node))).length > 0;
}

/** Removes remains of an earlier start of a node that does not run. Throws `LAB_LEFTOVERS` if its root stays mounted. */
export async function removeRemains(place: LabPlace, node: NodeRecord): Promise<void> {
  await removeGroup(nodeGroup(place, node));
  await removeCable(cableOf(place, node.number));
  await waitUntilFree(join(node.folder, "state.img"));
  await rm(join(node.folder, "pid"), { force: true });
}

/** Kills a node's processes and waits until the kernel has released its root. Throws `LAB_NODE_FAILED`, `LAB_LEFTOVERS`. */
export async function killMachine(place: LabPlace, node: NodeRecord): Promise<void> {
  if (!(await killAll(nodeGroup(place, node)))) {
    const left = (await processesOf(nodeGroup(place, node))).join(", ");
    throw nodeFailed({ message: `processes of ${node.name} cannot be killed: ${left}` });
  }
  await removeRemains(place, node);
}

/** Kills a node that did not start, and returns the error to throw, with the end of `log` in the node's folder. */
export async function failedStart(place: LabPlace, node: NodeRecord, log: string): Promise<KcoreError> {
  await killAll(nodeGroup(place, node));
  return nodeFailed({
    message: `${node.name} did not start`,
    detail: endLines(await readFile(join(node.folder, log), "utf8").catch(() => ""), 8),
    hint: `look at ${node.folder}/${log}`,
  });
}

/** The error `LAB_NODE_FAILED`, to throw. */
export function nodeFailed(problem: {
  readonly message: string;
  readonly detail?: string;
  readonly hint?: string;
}): KcoreError {
  return new KcoreError({ code: "LAB_NODE_FAILED", ...problem }, { exitCode: exitCodes.failed });
}

/** The loop devices (`/dev/loop3`) whose file's path begins with `prefix`. */
export async function findLoops(prefix: string): Promise<string[]> {
  const text = await mustRun("losetup", ["-n", "-O", "NAME,BACK-FILE"]);
  return text.split("\n").flatMap((line) => {
    const [name = "", file = ""] = line.trim().split(/\s+/);
    return file.startsWith(prefix) ? [name] : [];
  });
}

/** Detaches the loop devices of `findLoops`, with the partitions that px added in the kernel. */
export async function detachLoops(prefix: string): Promise<void> {
  for (const device of await findLoops(prefix)) {
    await runCommand("partx", ["-d", device]);
    await runCommand("losetup", ["-d", device]);
  }
}

/**
 * Waits until no loop device holds the file, because a mount ends only with the last namespace that sees it. Throws `LAB_LEFTOVERS`
 * after five seconds.
 */
async function waitUntilFree(file: string): Promise<void> {
  const isFree = async (): Promise<boolean> => (await runCommand("losetup", ["-j", file])).stdout === "";
  if (await poll(isFree, { everyMs: 30, limitMs: 5_000 })) return;
  throw new KcoreError(
    { code: "LAB_LEFTOVERS", message: `${file} is still held: a mount of it lives on in some mount namespace` },
    { exitCode: exitCodes.failed },
  );
}
