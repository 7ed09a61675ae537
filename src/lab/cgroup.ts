import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { open, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { poll } from "#base/wait.ts";
import { assetFolder } from "./assets.ts";
import { lastingEnvironment } from "./run-command.ts";

const root = "/sys/fs/cgroup";

/** The folders of this machine's cgroup hierarchies: all of v1, or the one tree of v2. The rule is the same as in files/in-cgroup. */
function hierarchies(): string[] {
  if (existsSync(join(root, "cgroup.controllers"))) return [root];
  if (!existsSync(root)) return [];
  return readdirSync(root)
    .map((name) => join(root, name))
    .filter((path) => existsSync(join(path, "cgroup.procs")));
}

/** The ids of the processes in a cgroup and in cgroups below it. */
export async function processesOf(group: string): Promise<number[]> {
  const first = hierarchies().find((hierarchy) => existsSync(join(hierarchy, group)));
  if (first === undefined) return [];
  const found = new Set<number>();
  for (const folder of folderTree(join(first, group))) {
    const text = await readFile(join(folder, "cgroup.procs"), "utf8").catch(() => "");
    for (const line of text.split("\n")) if (line !== "" && line !== "0") found.add(Number(line));
  }
  return [...found];
}

/**
 * Starts a program in a cgroup that outlives this process; its output goes to the end of `logFile`. Returns a function that
 * says whether the program still runs, also before it has come into the cgroup.
 */
export async function startInGroup(
  group: string,
  command: readonly string[],
  logFile: string,
  env: Readonly<Record<string, string>> = {},
): Promise<() => boolean> {
  const log = await open(logFile, "a", 0o600);
  try {
    const child = spawn(join(assetFolder(), "in-cgroup"), [group, ...command], {
      detached: true,
      cwd: "/",
      env: lastingEnvironment(env),
      stdio: ["ignore", log.fd, log.fd],
    });
    await once(child, "spawn");
    child.unref();
    return () => child.exitCode === null && child.signalCode === null;
  } finally {
    await log.close();
  }
}

/** Freezes all processes of a cgroup and waits for that, but at most a second; without `still`, thaws them. */
export async function freeze(group: string, still: boolean): Promise<void> {
  const v1 = join(root, "freezer", group);
  const v2 = join(root, group);
  if (existsSync(join(v1, "freezer.state"))) {
    await writeFile(join(v1, "freezer.state"), still ? "FROZEN" : "THAWED");
    if (still) await waitForContent(join(v1, "freezer.state"), /^FROZEN$/m);
  } else if (existsSync(join(v2, "cgroup.freeze"))) {
    await writeFile(join(v2, "cgroup.freeze"), still ? "1" : "0");
    if (still) await waitForContent(join(v2, "cgroup.events"), /^frozen 1$/m);
  }
}

async function waitForContent(file: string, content: RegExp): Promise<void> {
  await poll(async () => content.test(await readFile(file, "utf8")), { everyMs: 10, limitMs: 1_000 });
}

/** Kills all processes of a cgroup, frozen or not, until none is left. Returns false if some are left after ten seconds. */
export async function killAll(group: string): Promise<boolean> {
  const killOnce = async (): Promise<boolean> => {
    const left = await processesOf(group);
    if (left.length === 0) return true;
    for (const pid of left) signal(pid, "SIGKILL");
    await freeze(group, false).catch(() => {});
    return false;
  };
  return (await poll(killOnce, { everyMs: 15, limitMs: 10_000 })) ?? false;
}

/** Removes a cgroup, and cgroups below it, from every hierarchy; a cgroup with processes stays. */
export async function removeGroup(group: string): Promise<void> {
  for (const hierarchy of hierarchies()) {
    for (const folder of folderTree(join(hierarchy, group)).toReversed()) await rmdir(folder).catch(() => {});
  }
}

/** The cgroup's folders that exist, one a hierarchy. */
export function groupFolders(group: string): string[] {
  return hierarchies()
    .map((hierarchy) => join(hierarchy, group))
    .filter((folder) => existsSync(folder));
}

/** Sets a cgroup's CPU shares in cgroup v1, by whose default a whole fleet weighs as much as one thread of the host. Leaves v2 alone. */
export async function raiseWeight(group: string, shares: number): Promise<void> {
  for (const path of new Set([join(root, "cpu", group), join(root, "cpu,cpuacct", group)])) {
    if (existsSync(path)) await writeFile(join(path, "cpu.shares"), String(shares)).catch(() => {});
  }
}

/** Sends a signal; a process that has just ended is no error. */
function signal(pid: number, name: NodeJS.Signals | number): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** A folder and all folders in it, parents first; a cgroup may vanish during the reading. */
function folderTree(folder: string): string[] {
  let inside: string[] = [];
  try {
    inside = readdirSync(folder, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => folderTree(join(folder, entry.name)));
  } catch {
    return existsSync(folder) ? [folder] : [];
  }
  return [folder, ...inside];
}
