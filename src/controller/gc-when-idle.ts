import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/**
 * Makes V8 collect when its heap has grown by half; to be called first. By default V8 lets a small heap grow to several
 * times its live size, so a burst of requests leaves tens of MB behind (S-17). The unit bounds the young generation,
 * which only the start of a process can.
 */
export function boundGarbage(): void {
  setFlagsFromString("--heap-growing-percent=50");
}

/** So many deleted registers leave tens of MB behind. */
const worthwhile = 10_000;

/**
 * Returns memory after many deletions; called now and then with the state's size in registers. V8 keeps a heap as large as a burst of
 * work has made it. A collection stops all other work (1 to 3 ms for each live MB), so it waits until a third of the state is gone.
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
  // As when memory is short: the young generation shrinks as well, and free pages go back to the system.
  collect?.({ type: "major", flavor: "last-resort" });
}
