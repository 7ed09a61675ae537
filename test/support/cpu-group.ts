import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { killAll, removeGroup } from "#lab/cgroup.ts";

/** A cgroup (v2) of processes; the kernel counts the CPU time of living and ended ones to the microsecond. */
export interface CpuGroup {
  /** The line of sh by which a shell enters the group. */
  readonly enter: string;
  cpuSeconds(): number;
  /** Kills all processes of the group, and removes it. */
  remove(): Promise<void>;
}

let made = 0;

/** Makes a group, or none on a machine without cgroup v2 or the right to make one. */
export function makeCpuGroup(): CpuGroup | undefined {
  const root = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].find((path) =>
    existsSync(join(path, "cgroup.controllers")),
  );
  if (root === undefined) return undefined;
  const name = `kcore-cpu-${process.pid}-${(made += 1)}`;
  const figures = join(root, name, "cpu.stat");
  try {
    mkdirSync(join(root, name));
  } catch {
    return undefined;
  }
  const group: CpuGroup = {
    enter: `echo 0 >${join(root, name, "cgroup.procs")} || exit 1\n`,
    cpuSeconds: () => Number(/^usage_usec (\d+)$/m.exec(readFileSync(figures, "utf8"))?.[1]) / 1e6,
    async remove() {
      await killAll(name);
      await removeGroup(name);
    },
  };
  // A container may show groups that none of its processes may enter.
  if (existsSync(figures) && spawnSync("sh", ["-c", group.enter]).status === 0) return group;
  void removeGroup(name);
  return undefined;
}
