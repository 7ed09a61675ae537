import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * Runs a seed. A replica's work in the background has no caller, so Node reports its errors as unhandled rejections: between two turns of the
 * event loop, that is after the seed. @throws the seed's own error, else the first of these
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
