import { readFileSync } from "node:fs";

/** Measures this process's CPU time from now on, in milliseconds: other processes of a busy machine add nothing to it. */
export function cpuClock(): () => number {
  const begun = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / 1000;
  };
}

/** Measures the CPU time of ended children and their own ended children from now on, in milliseconds. */
export function childCpuClock(): () => number {
  const begun = childTicks();
  return () => (childTicks() - begun) * 10;
}

/** Seconds of CPU time of this process and of its ended children since its start. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + childTicks() / 100;
}

/** The CPU time of ended children, in hundredths of a second (proc_pid_stat(5): cutime, cstime). */
function childTicks(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return Number(fields[13]) + Number(fields[14]);
}
