import { readFileSync } from "node:fs";

/** Identifies a process among all that have or had its number: by its start time (proc(5), field 22 of `stat`) and the boot. */
export interface ProcessMark {
  readonly pid: number;
  /** Clock ticks after boot. */
  readonly start: string;
  readonly boot: string;
}

/** The mark of a living process; undefined when no process of that number lives. */
export function markProcess(pid: number): ProcessMark | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name may hold spaces and parentheses: fields are counted from the last parenthesis on.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, start] = [fields[0], fields[19]];
    if (start === undefined || state === "Z" || state === "X") return undefined;
    return { pid, start, boot: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() };
  } catch {
    return undefined;
  }
}

/** Whether the marked process still lives, and not only a later process with its number. */
export function isAlive(mark: ProcessMark | undefined): boolean {
  if (mark === undefined) return false;
  const now = markProcess(mark.pid);
  return now !== undefined && now.start === mark.start && now.boot === mark.boot;
}
