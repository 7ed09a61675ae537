import { readFileSync } from "node:fs";

/** Begins to count this process's time of processor, in milliseconds: other processes of a busy machine add nothing to it. */
export function cpuClock(): () => number {
  const begun = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(begun);
    return (user + system) / 1000;
  };
}

/** The same for the programs that this process started and that have ended, with all that they waited for. */
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
