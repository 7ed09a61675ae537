import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import type { RunTasks } from "#base/tasks.ts";
import { poll } from "#base/wait.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { bridgeDown, isForeign, labInterfaces, removeCable } from "./bridge.ts";
import { groupFolders, killAll, removeGroup } from "./cgroup.ts";
import { mustRun } from "./run-command.ts";
import { withLock } from "./lock.ts";
import { detachLoops, findLoops } from "./processes.ts";
import { removeMachine } from "./machine.ts";
import { lockOfLab, type LabPlace } from "./place.ts";
import { lockOfNode, readNodeRecord, readNodeRecords, type NodeRecord } from "./record.ts";

/**
 * Kills and removes these nodes, by default all; with the last node go the package server, the bridge, the cgroups and the
 * lab's folder. Throws `LAB_LEFTOVERS` if anything stays; `LAB_NODE_UNKNOWN`, `LAB_NODE_FAILED`, `LAB_COMMAND_FAILED`,
 * `LAB_BUSY`.
 */
export async function takeDown(
  place: LabPlace,
  names: readonly string[] | undefined,
  { tasks, note }: { readonly tasks: RunTasks; readonly note: (line: string) => void },
): Promise<void> {
  const all = names === undefined || names.length === 0;
  const records = all
    ? await readNodeRecords(place)
    : await Promise.all(names.map((name) => readNodeRecord(place, name)));
  const remove = (record: NodeRecord): Promise<void> =>
    withLock(place.home, lockOfNode(place, record), 120, () => removeMachine(place, record));
  if (all && records.length === 0 && !existsSync(place.folder) && (await findLeftovers(place)).length === 0) {
    note(`lab “${place.name}” is not up`);
    return;
  }
  await tasks(
    records.map((record) => ({
      title: `taking down ${record.name}`,
      work: () => remove(record),
    })),
  );
  await withLock(place.home, lockOfLab(place), 60, async () => {
    if ((await readNodeRecords(place)).length > 0) return; // other nodes stay, or another command has just made new ones
    await sweep(place);
    await refuseLeftovers(place);
    await rm(place.folder, { recursive: true, force: true }); // another “down” may have been faster
  });
}

/** Removes the lab's remains in the kernel, also after its folder was removed by hand, and half-made nodes. */
async function sweep(place: LabPlace): Promise<void> {
  if (!(await isForeign(place))) {
    await killAll(place.group);
    for (const cable of labInterfaces(place).filter((name) => name !== place.bridge)) await removeCable(cable);
    await bridgeDown(place);
    await removeGroup(place.group);
  }
  await detachLoops(`${place.folder}/`);
  await mustRun("rm", ["-rf", "--one-file-system", join(place.folder, "nodes")]);
}

/** Throws `LAB_LEFTOVERS` with everything of the lab that is still on this machine after five seconds. */
async function refuseLeftovers(place: LabPlace): Promise<void> {
  let left: readonly string[] = [];
  // The kernel removes file systems and cables only after the end of the last process that saw them.
  const isClean = async (): Promise<boolean> => {
    left = await findLeftovers(place);
    return left.length === 0;
  };
  if (await poll(isClean, { everyMs: 50, limitMs: 5_000 })) return;
  throw new KcoreError(
    {
      code: "LAB_LEFTOVERS",
      message: `lab “${place.name}” could not be taken down wholly`,
      detail: left.join("\n"),
      hint: "run “kcore lab down” again; files that stay then are held by a process outside the lab",
    },
    { exitCode: exitCodes.failed },
  );
}

/** The lab's loop devices, mounts, interfaces and cgroups on this machine, in words. */
async function findLeftovers(place: LabPlace): Promise<string[]> {
  const mounts = (await readFile("/proc/self/mounts", "utf8"))
    .split("\n")
    .filter((line) => line.includes(` ${place.folder}/`));
  const left = [
    ...(await findLoops(`${place.folder}/`)).map((device) => `loop device ${device}`),
    ...mounts.map((line) => `mount ${line}`),
  ];
  if (await isForeign(place)) return left;
  left.push(...labInterfaces(place).map((name) => `network interface ${name}`));
  left.push(...groupFolders(place.group).map((folder) => `cgroup ${folder}`));
  return left;
}
