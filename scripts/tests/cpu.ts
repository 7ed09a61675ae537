import { readFileSync } from "node:fs";

/** Linux's unit of times in /proc, in every kernel that Debian ships. */
const ticksPerSecond = 100;

/** CPU seconds of this process and of all children that it waited for, from proc(5), `stat`. */
export function cpuSeconds(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0);
  return ticks / ticksPerSecond;
}

/** CPU seconds that all processes of the machine used since it started, idle and stolen time left out. */
export function machineCpuSeconds(): number {
  const [, user, nice, system] = readFileSync("/proc/stat", "utf8").split(/\s+/, 4).map(Number);
  return ((user ?? 0) + (nice ?? 0) + (system ?? 0)) / ticksPerSecond;
}
