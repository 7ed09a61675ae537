import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Runs a seed. Work that a replica does in the background has no caller, so Node reports its errors as unhandled rejections. Node does that
 * between two turns of the event loop, so after the seed. @throws the first of them, unless the seed itself threw
 */
export async function withBackgroundFaults(run: () => Promise<void>): Promise<void> {
  const faults: unknown[] = [];
  const note = (error: unknown): void => void faults.push(error);
  process.on("unhandledRejection", note);
  try {
    await run();
    await nextTurn();
    if (faults.length > 0) throw faults[0] as Error;
  } finally {
    await nextTurn();
    process.off("unhandledRejection", note);
  }
}
