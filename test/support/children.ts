import { readdir, readFile } from "node:fs/promises";

/** The pids of all processes below `pid`, nearest first; use it only for processes that the test started. */
export async function descendantsOf(pid: number): Promise<number[]> {
  const parents = new Map<number, number[]>();
  for (const entry of await readdir("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    const status = await readFile(`/proc/${entry}/stat`, "utf8").catch(() => "");
    // The program's name, in brackets, may contain any character; the parent is the second field behind it.
    const parent = Number(status.slice(status.lastIndexOf(")") + 2).split(" ")[1]);
    if (parent > 0) parents.set(parent, [...(parents.get(parent) ?? []), Number(entry)]);
  }
  const found: number[] = [];
  for (let level = parents.get(pid) ?? []; level.length > 0;) {
    found.push(...level);
    level = level.flatMap((child) => parents.get(child) ?? []);
  }
  return found;
}

/** Sends a signal to one process, which may be gone already. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}
