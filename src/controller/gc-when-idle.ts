import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Has V8 clear up when what it holds has grown by half, before a controller does anything else. By itself it lets a small heap grow to
 * several times of what lives in it, and whoever asks a great deal at once, a stranger's noise too, leaves tens of MB behind (S-17). The
 * unit bounds the young generation, which only the start of a process can.
 */
export function boundGarbage(): void {
  setFlagsFromString("--heap-growing-percent=50");
}

/** So many registers fewer leave some tens of MB behind. */
const worthwhile = 10_000;

/**
 * Gives back what a state no longer needs after many deletions; called now and then with its size in registers. V8 by itself keeps a
 * heap as large as a burst of work has made it, its young generation of up to 128 MiB too, for as long as a quiet
 * process allocates little. All other work stands still meanwhile (1 to 3 ms for each MB that lives on), so it is done when a third of the state
 * is gone, and the size stands.
 */
export function collectWhenIdle(collect = collectAll): (registers: number) => void {
  let most = 0;
  let last = 0;
  return (registers) => {
    most = Math.max(most, registers);
    const isQuiet = registers === last;
    last = registers;
    if (!isQuiet || most - registers < worthwhile || registers * 3 > most * 2) return;
    most = registers;
    collect();
  };
}

function collectAll(): void {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as typeof globalThis.gc;
  // As when memory runs short: the young generation shrinks as well, and free pages go back to the system.
  collect?.({ type: "major", flavor: "last-resort" });
}
