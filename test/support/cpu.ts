import { readFileSync } from "node:fs";

/** Measures this process's CPU time from now on, in milliseconds: other processes of a busy machine add nothing to it. */
export function cpuClock(): () => number {
  const begun = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / 1000;
  };
}

/** Measures the CPU time of ended children, with the children they waited for. */
export function childCpuClock(): () => number {
  const begun = childTicks();
  return () => (childTicks() - begun) * 10;
}

/** Processor seconds of this process and of all children that it waited for, since it began. */
export function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6 + childTicks() / 100;
}

/** Hundredths of a second (proc_pid_stat(5)). */
function childTicks(): number {
  const fields = readFileSync("/proc/self/stat", "utf8").split(") ").at(-1)?.split(" ") ?? [];
  return Number(fields[13]) + Number(fields[14]);
}
