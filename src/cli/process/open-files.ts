import { readFileSync } from "node:fs";

/**
 * How many files this process may have open (proc(5), limits); Infinity when nothing limits them, or nobody can tell. Node
 * raises the soft limit to the hard one when it starts.
 */
export function openFileLimit(): number {
  try {
    const [, limit] = /^Max open files +(\d+) /m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return limit === undefined ? Infinity : Number(limit);
  } catch {
    return Infinity;
  }
}
