import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Makes V8 collect garbage when the heap has grown by half; to be called first. By default V8 lets a small heap grow to
 * several times its live size, so a burst of requests leaves tens of MB behind (S-17). The systemd unit limits the young
 * generation, since only a flag at the process's start can.
 */
export function limitHeapGrowth(): void {
  setFlagsFromString("--heap-growing-percent=50");
}

/** The minimum number of deleted registers that justifies a collection: they leave tens of MB behind. */
const fewestDeleted = 10_000;

/**
 * Returns a function that returns memory to the system after many deletions; the caller passes the number of registers at intervals. V8
 * keeps a heap as large as a burst of work made it. A collection stops all other work (1 to 3 ms for each live MB). So the collection
 * waits until a third of the registers is gone and their number no longer changes.
 */
export function collectAfterDeletions(collect = collectAll): (registers: number) => void {
  let most = 0;
  let last = 0;
  return (registers) => {
    most = Math.max(most, registers);
    const isQuiet = registers === last;
    last = registers;
    if (!isQuiet || most - registers < fewestDeleted || registers * 3 > most * 2) return;
    most = registers;
    collect();
  };
}

function collectAll(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as typeof globalThis.gc;
  // “last-resort” also shrinks the young generation and returns free pages to the system.
  collect?.({ type: "major", flavor: "last-resort" });
}
