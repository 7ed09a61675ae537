import { existsSync } from "node:fs";
import { readFile, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { bridgeDown, labInterfaces } from "./bridge.ts";
import { foldersOf, removeGroup } from "./cgroup.ts";
import { must } from "./local.ts";
import { withLock } from "./lock.ts";
import { detachLoops, findLoops } from "./loops.ts";
import { removeMachine } from "./machine.ts";
import { lockOfLab, type Place } from "./place.ts";
import { told, type Log } from "./progress.ts";
import { lockOfNode, readRecord, readRecords, type NodeRecord } from "./record.ts";
import { stopServing } from "./repository.ts";

/**
 * Kills and removes these nodes, by default all; with the last one go the package server, the bridge, the cgroups and the lab's
 * folder. Throws `LAB_LEFTOVERS` if anything stays.
 */
export async function takeDown(place: Place, names: readonly string[] | undefined, log: Log): Promise<void> {
  if (!existsSync(place.folder)) {
    log(`lab “${place.name}” is not up`);
    return;
  }
  const all = names === undefined || names.length === 0;
  const records = all ? await readRecords(place) : await Promise.all(names.map((name) => readRecord(place, name)));
  const remove = (record: NodeRecord): Promise<void> =>
    withLock(place.home, lockOfNode(place, record), 120, () => removeMachine(place, record));
  await told(log, `taking down ${records.map(({ name }) => name).join(", ") || "what is left"}`, () =>
    Promise.all(records.map(remove)),
  );
  await withLock(place.home, lockOfLab(place), 60, async () => {
    if ((await readRecords(place)).length > 0) return; // other nodes stay, or somebody has just made new ones
    await stopServing(place);
    await detachLoops(`${place.folder}/`);
    await bridgeDown(place);
    await removeGroup(place.group);
    await must("rm", ["-rf", "--one-file-system", join(place.folder, "nodes")]); // a node whose making or removal was killed
    await refuseLeftovers(place);
    await rm(place.folder, { recursive: true, force: true }); // another “down” may have been faster
  });
}

/** Throws `LAB_LEFTOVERS` naming everything of the lab that is still on this machine. */
async function refuseLeftovers(place: Place): Promise<void> {
  const mounts = (await readFile("/proc/self/mounts", "utf8"))
    .split("\n")
    .filter((line) => line.includes(` ${place.folder}/`));
  const nodes = join(place.folder, "nodes");
  const left = [
    ...(existsSync(nodes) ? await readdir(nodes) : []).map((name) => `folder ${join(nodes, name)}`),
    ...labInterfaces(place).map((name) => `network interface ${name}`),
    ...foldersOf(place.group).map((folder) => `cgroup ${folder}`),
    ...(await findLoops(`${place.folder}/`)).map((device) => `loop device ${device}`),
    ...mounts.map((line) => `mount ${line}`),
  ];
  if (left.length === 0) return;
  throw new KcoreError(
    {
      code: "LAB_LEFTOVERS",
      message: `lab “${place.name}” could not be taken down wholly`,
      detail: left.join("\n"),
      hint: "run “kcore lab down” again; what stays then is held by a process outside the lab",
    },
    { exitCode: exitCodes.failed },
  );
}
