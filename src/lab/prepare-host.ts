import { existsSync } from "node:fs";
import { readFile, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunTasks } from "#base/tasks.ts";
import { formatBytes } from "#base/units.ts";
import { KcoreError, exitCodes } from "#errors/problem.ts";
import { labSearchPath, mustRun } from "./run-command.ts";

/** Throws `LAB_NEEDS_ROOT` unless this process may make containers, bridges and loop devices. */
export function requireRoot(): void {
  if (process.getuid?.() === 0) return;
  throw new KcoreError({
    code: "LAB_NEEDS_ROOT",
    message: "the lab needs root: it makes a network bridge, loop devices and systemd-nspawn machines on this computer",
    hint: "run it with sudo; it says before it installs packages, and “kcore lab down” takes everything away again",
  });
}

/** Free bytes for the images, the files to make them and the nodes' own files; virtual machines need twice as many. */
const neededBytes = 1_000_000_000;

/** Throws `LAB_DISK_FULL` if the file system of `home` has too little room for the images. */
export async function requireSpace(home: string, withVms: boolean): Promise<void> {
  const needed = withVms ? 2 * neededBytes : neededBytes;
  const { bavail, bsize } = await statfs(home);
  if (bavail * bsize >= needed) return;
  throw new KcoreError(
    {
      code: "LAB_DISK_FULL",
      message: `${home} has ${formatBytes(bavail * bsize)} free, and making the lab's images takes ${formatBytes(needed)}`,
      hint: "free some, or set KCORE_LAB_DIR to a folder on another disk",
    },
    { exitCode: exitCodes.failed },
  );
}

const instances = { file: "/proc/sys/fs/inotify/max_user_instances", needed: 4096 } as const;

/** Lets root have more inotify instances than the kernel's 128: each Debian node holds a dozen, and without one it hangs as it boots. */
export async function raiseInotifyLimit(): Promise<void> {
  if (Number(await readFile(instances.file, "utf8")) >= instances.needed) return;
  await writeFile(instances.file, String(instances.needed));
}

/**
 * Installs, as a task, the packages whose commands this machine lacks, and Debian's keyring. `packagesOf`: package by command. `locked` runs
 * its work while no other lab command uses apt. Throws `LAB_UNSUPPORTED` without apt, `LAB_COMMAND_FAILED`.
 */
export async function prepareHost(
  tasks: RunTasks,
  packagesOf: Readonly<Record<string, string>>,
  locked: (work: () => Promise<void>) => Promise<void>,
): Promise<void> {
  if (missingPackages(packagesOf).size === 0) return;
  // The former holder of the lock may have installed them.
  await locked(() => install(tasks, missingPackages(packagesOf)));
}

const folders = labSearchPath.split(":");

function missingPackages(packagesOf: Readonly<Record<string, string>>): ReadonlySet<string> {
  const missing = Object.entries(packagesOf).filter(
    ([command]) => !folders.some((folder) => existsSync(join(folder, command))),
  );
  const packages = new Set(missing.map(([, name]) => name));
  if (!existsSync("/usr/share/keyrings/debian-archive-keyring.gpg")) packages.add("debian-archive-keyring");
  return packages;
}

async function install(tasks: RunTasks, packages: ReadonlySet<string>): Promise<void> {
  if (packages.size === 0) return;
  if (!folders.some((folder) => existsSync(join(folder, "apt-get")))) {
    throw new KcoreError({
      code: "LAB_UNSUPPORTED",
      message: `this machine lacks ${[...packages].join(", ")}, and the lab can install packages only with apt`,
      hint: "install them by hand, or run the lab on Debian 12",
    });
  }
  const words = ["-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=300", "install", ...packages];
  const work = async (): Promise<void> => {
    await mustRun("dpkg", ["--configure", "-a"]); // an earlier run may have been killed in the middle
    await mustRun("apt-get", ["-q", "update"]);
    await mustRun("apt-get", words);
  };
  await tasks([{ title: `installing on this machine: ${[...packages].join(" ")}`, work }]);
}
