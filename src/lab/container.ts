import { existsSync } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { poll } from "#base/wait.ts";
import { assetFolder } from "./assets.ts";
import { freeze, processesOf, startInGroup } from "./cgroup.ts";
import { withPrefix, type LabPlace } from "./place.ts";
import { removeRemains, failedStart, nodeGroup, killMachine } from "./processes.ts";
import { consoleLogOf, type NodeRecord } from "./record.ts";
import { sourcesLine } from "./repository.ts";
import { mustRun } from "./run-command.ts";

/** Starts a node that does not run; returns as soon as its supervisor has made its mounts. Throws `LAB_NODE_FAILED`, `LAB_LEFTOVERS`. */
export async function startContainer(place: LabPlace, node: NodeRecord): Promise<void> {
  await removeRemains(place, node);
  await makeState(node);
  const supervise = ["unshare", "-m", "--propagation", "slave", join(assetFolder(), "supervise")];
  const environment = await environmentOf(place, node);
  const runs = await startInGroup(nodeGroup(place, node), supervise, consoleLogOf(node), environment);
  const isUp = (): boolean => existsSync(join(node.folder, "pid"));
  await poll(() => isUp() || !runs(), { everyMs: 10, limitMs: 30_000 });
  if (!isUp()) throw await failedStart(place, node, "console.log");
}

/**
 * Ends a node as a power cut does: unsynced data of its ext4 and xfs file systems is lost. Throws `LAB_NODE_FAILED`, `LAB_LEFTOVERS`,
 * `LAB_COMMAND_FAILED`.
 */
export async function cutContainer(place: LabPlace, node: NodeRecord): Promise<void> {
  const group = nodeGroup(place, node);
  const pids = await processesOf(group);
  const supervisor = Number(await readFile(join(node.folder, "pid"), "utf8").catch(() => ""));
  if (pids.includes(supervisor)) {
    const init = await firstChild(await firstChild(supervisor));
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

/** The kernel names of the loop devices that are the node's disks. */
export async function loopsOf(node: NodeRecord): Promise<string[]> {
  const text = await readFile(join(node.folder, "lab-disks"), "utf8").catch(() => "");
  return text.split("\n").flatMap((line) => (line === "" ? [] : [line.split(" ")[0] ?? ""]));
}

async function environmentOf(place: LabPlace, node: NodeRecord): Promise<Record<string, string>> {
  return {
    FOLDER: node.folder,
    NODE: node.name,
    KIND: node.kind,
    ADDRESS: withPrefix(place, node.address),
    BRIDGE: place.bridge,
    // Machine names must be unique on this machine: another lab may have an n1, too.
    MACHINE: `${place.bridge}-${node.number}`,
    MACHINE_ID: node.id,
    CGROUP: nodeGroup(place, node),
    LOWER: node.images.join(":"),
    DISKS: String(node.disks.length),
    SOURCES: node.release === undefined ? sourcesLine(place) : "",
    KEY: (await readFile(join(place.home, "id.pub"), "utf8")).trim(),
  };
}

/** Makes the file system of the upper layer of a node's root, once. */
async function makeState(node: NodeRecord): Promise<void> {
  const state = join(node.folder, "state.img");
  if (existsSync(state)) return;
  await rm(`${state}.new`, { force: true });
  await mustRun("truncate", ["-s", node.root ?? "8G", `${state}.new`]);
  await mustRun("mkfs.ext4", ["-q", "-E", "lazy_itable_init=1,nodiscard", `${state}.new`]);
  await rename(`${state}.new`, state);
}

/** The first child of a process. The supervisor's is nspawn, and nspawn's is the node's PID 1. */
async function firstChild(pid: number | undefined): Promise<number | undefined> {
  if (pid === undefined) return undefined;
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const first = Number(text.split(" ")[0]);
  return first > 0 ? first : undefined;
}

/**
 * Makes file systems forget unwritten data, as a power cut does: FS_IOC_SHUTDOWN with FSOP_GOING_FLAGS_NOLOGFLUSH
 * (linux/fs.h, 0x8004587d). Killing processes alone would lose nothing: the page cache stays and the kernel unmounts cleanly.
 * Perl, because Node has no ioctl; perl-base is on every Debian. Throws `LAB_COMMAND_FAILED` if a file system refuses.
 */
async function cutPower(mountPoints: readonly string[]): Promise<void> {
  const cut = `my($v,$f)=pack("L",2);open($f,"<",$_)&&ioctl($f,0x8004587d,$v) or do{$bad=1;warn "$_: $!\\n"}`;
  await mustRun("perl", ["-e", `my $bad;for(@ARGV){${cut}}exit($bad?1:0)`, "--", ...mountPoints]);
}

/** The mount points of these loop devices in the node whose PID 1 is `init`, as paths of this machine. */
async function findMounts(init: number, loops: readonly string[]): Promise<string[]> {
  const text = await readFile(`/proc/${init}/mounts`, "utf8").catch(() => "");
  return readMounts(text, loops).map((point) => `/proc/${init}/root${point}`);
}

/** The mount points in a text of proc(5) mounts: one for each ext4 or xfs file system on these loop devices or their partitions. */
export function readMounts(text: string, loops: readonly string[]): string[] {
  const points = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [device = "", point = "", type = ""] = line.split(" ");
    const disk = /^\/dev\/(loop\d+)(?:p\d+)?$/.exec(device)?.[1];
    if (disk === undefined || !loops.includes(disk) || (type !== "ext4" && type !== "xfs")) continue;
    if (!points.has(device)) points.set(device, unescapeMount(point));
  }
  return [...points.values()];
}

/** Blanks in a mount point are written as octal numbers. */
function unescapeMount(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}
