import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { open, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { assetFolder } from "./assets.ts";
import { cableOf, removeCable } from "./bridge.ts";
import { freeze, killAll, processesOf, removeGroup } from "./cgroup.ts";
import { findMounts, cutPower } from "./blackout.ts";
import { lastingEnvironment, lastLines, must } from "./run-command.ts";
import { detachLoops, waitUntilFree } from "./loops.ts";
import type { Place } from "./place.ts";
import type { NodeRecord } from "./record.ts";
import { sourcesLine } from "./repository.ts";

/** Whether anything of the node runs. */
export async function isRunning(place: Place, node: NodeRecord): Promise<boolean> {
  return (await processesOf(groupOf(place, node))).length > 0;
}

/** Starts a node that does not run; returns as soon as its supervisor holds its mounts. Throws `LAB_NODE_FAILED`. */
export async function startMachine(place: Place, node: NodeRecord): Promise<void> {
  if (await isRunning(place, node)) return;
  await removeGroup(groupOf(place, node));
  await removeCable(cableOf(place, node.number));
  await waitUntilFree(join(node.folder, "state.img"));
  await makeDisks(node);
  await rm(join(node.folder, "pid"), { force: true });
  const log = await open(join(node.folder, "console.log"), "a", 0o600);
  try {
    const supervise = ["unshare", "-m", "--propagation", "slave", join(assetFolder(), "supervise")];
    const child = spawn(join(assetFolder(), "in-cgroup"), [groupOf(place, node), ...supervise], {
      detached: true,
      cwd: "/",
      env: lastingEnvironment(await environmentOf(place, node)),
      stdio: ["ignore", log.fd, log.fd],
    });
    let ended = false;
    child.on("error", () => (ended = true)).on("exit", () => (ended = true));
    for (const end = performance.now() + 30_000; !ended && performance.now() < end; await sleep(10)) {
      if (existsSync(join(node.folder, "pid"))) {
        child.unref();
        return;
      }
    }
  } finally {
    await log.close();
  }
  await killAll(groupOf(place, node));
  const detail = lastLines(await readFile(join(node.folder, "console.log"), "utf8"), 8);
  throw new KcoreError(
    {
      code: "LAB_NODE_FAILED",
      message: `${node.name} did not start`,
      detail,
      hint: `look at ${node.folder}/console.log`,
    },
    { exitCode: exitCodes.failed },
  );
}

/** Ends a node as a power cut does: what it had not synced to its ext4 and xfs file systems is lost. */
export async function cutMachine(place: Place, node: NodeRecord): Promise<void> {
  const group = groupOf(place, node);
  const pids = await processesOf(group);
  const supervisor = Number(await readFile(join(node.folder, "pid"), "utf8").catch(() => ""));
  if (pids.includes(supervisor)) {
    const init = await childOf(await childOf(supervisor));
    await freeze(group, true);
    try {
      await cutPower([
        `/proc/${supervisor}/root${node.folder}/state`,
        ...(init ? await findMounts(init, await loopsOf(node)) : []),
      ]);
    } finally {
      await killMachine(place, node);
    }
  } else await killMachine(place, node);
}

/** Kills all of a node and waits until the kernel has let go of what it held. */
async function killMachine(place: Place, node: NodeRecord): Promise<void> {
  if (!(await killAll(groupOf(place, node)))) {
    throw new KcoreError(
      {
        code: "LAB_NODE_FAILED",
        message: `processes of ${node.name} cannot be killed: ${(await processesOf(groupOf(place, node))).join(", ")}`,
      },
      { exitCode: exitCodes.failed },
    );
  }
  await rm(join(node.folder, "pid"), { force: true });
  await removeGroup(groupOf(place, node));
  await removeCable(cableOf(place, node.number));
  await waitUntilFree(join(node.folder, "state.img"));
}

/** Kills a node and removes everything of it. */
export async function removeMachine(place: Place, node: NodeRecord): Promise<void> {
  await killMachine(place, node);
  await detachLoops(`${node.folder}/`);
  await must("rm", ["-rf", "--one-file-system", node.folder]);
}

/** The kernel names of the loop devices that are the node's disks. */
export async function loopsOf(node: NodeRecord): Promise<string[]> {
  const text = await readFile(join(node.folder, "lab-disks"), "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => (line === "" ? [] : [line.split(" ")[0] ?? ""]));
}

function groupOf({ group }: Place, { name }: NodeRecord): string {
  return `${group}/${name}`;
}

async function environmentOf(place: Place, node: NodeRecord): Promise<Record<string, string>> {
  return {
    FOLDER: node.folder,
    NODE: node.name,
    KIND: node.kind,
    ADDRESS: node.address,
    GATEWAY: place.gateway,
    BRIDGE: place.bridge,
    // one name space for the whole machine: another lab may have an n1
    MACHINE: `${place.bridge}-${node.number}`,
    MACHINE_ID: node.id,
    CGROUP: groupOf(place, node),
    LOWER: node.images.join(":"),
    DISKS: String(node.disks.length),
    SOURCES: sourcesLine(place),
    KEY: (await readFile(join(place.home, "id.pub"), "utf8")).trim(),
  };
}

async function makeDisks(node: NodeRecord): Promise<void> {
  for (const [index, size] of node.disks.entries()) {
    const path = join(node.folder, `disk${index}.img`);
    if (!existsSync(path)) await must("truncate", ["-s", size, path]);
  }
  const state = join(node.folder, "state.img");
  if (existsSync(state)) return;
  await rm(`${state}.new`, { force: true });
  await must("truncate", ["-s", node.root ?? "8G", `${state}.new`]);
  await must("mkfs.ext4", ["-q", "-E", "lazy_itable_init=1,nodiscard", `${state}.new`]);
  await rename(`${state}.new`, state);
}

/** The first child of a process: supervisor → nspawn → the node's PID 1. */
async function childOf(pid: number | undefined): Promise<number | undefined> {
  if (pid === undefined) return undefined;
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const first = Number(text.split(" ")[0]);
  return first > 0 ? first : undefined;
}
