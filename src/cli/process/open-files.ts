import { readFileSync } from "node:fs";

/**
 * The number of files that this process may have open (proc(5), limits); Infinity without a limit, or if the limit
 * cannot be read. Node raises the soft limit to the hard one when it starts.
 */
export function openFileLimit(): number {
  try {
    const [, limit] = /^Max open files +(\d+) /m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return limit === undefined ? Infinity : Number(limit);
  } catch {
    return Infinity;
  }
}
