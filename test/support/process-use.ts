import { readdirSync, readFileSync } from "node:fs";

/** The resources that a process has used so far. */
export interface Use {
  readonly pid: number;
  /** The time of the reading: monotonic, ms. */
  readonly at: number;
  /** Wake-ups by thread name: each thread had gone to sleep by itself before (proc_pid_status(5)). */
  readonly wakes: ReadonlyMap<string, number>;
  /** User and system time, ms, as the scheduler counts it (/proc/PID/task/TID/schedstat). */
  readonly cpuMs: number;
  readonly residentMb: number;
}

/** A process's use of resources per second, between two readings. */
export interface Rate {
  /** Wake-ups per second of all threads. */
  readonly wakes: number;
  /** Wake-ups per second by thread name, the busiest first. */
  readonly byThread: readonly (readonly [string, number])[];
  /** Percent of one core. */
  readonly percent: number;
  readonly residentMb: number;
}

export function useOf(pid: number): Use {
  const wakes = new Map<string, number>();
  let cpuMs = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
    const name = /^Name:\s+(.*)$/m.exec(status)?.[1] ?? "";
    wakes.set(name, (wakes.get(name) ?? 0) + Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(status)?.[1]));
    cpuMs += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0]) / 1e6;
  }
  const residentMb = Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;
  return { pid, at: performance.now(), wakes, cpuMs, residentMb };
}

/** The use per second between the reading `before` and now. */
export function rateOf(before: Use): Rate {
  const now = useOf(before.pid);
  const seconds = (now.at - before.at) / 1000;
  const rateOfThread = ([name, count]: readonly [string, number]) =>
    [name, (count - (before.wakes.get(name) ?? 0)) / seconds] as const;
  const byThread = [...now.wakes].map(rateOfThread).toSorted((a, b) => b[1] - a[1]);
  return {
    wakes: byThread.reduce((sum, [, count]) => sum + count, 0),
    byThread: byThread.filter(([, count]) => count > 0.05),
    percent: (now.cpuMs - before.cpuMs) / seconds / 10,
    residentMb: now.residentMb,
  };
}
