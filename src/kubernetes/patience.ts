import { setTimeout as sleep } from "node:timers/promises";
import { Refusal, Unreachable } from "./refusals.ts";

/** Seconds between two looks, and until what is waited for is told again. */
const PAUSE = 1;
const REMINDER = 60;

/** What one look found: it is so, or what is still waited for. */
export type Look<Found> = { readonly found: Found } | { readonly waitingFor: string };

export interface Patience {
  readonly seconds: number;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/**
 * Looks until it is so. A server that does not answer meanwhile, or is too busy, is waited for like all else: API servers restart.
 * @throws what `tooLong` makes of the last answer, once the time is up; what `look` throws
 */
export async function until<Found>(
  look: () => Promise<Look<Found>>,
  tooLong: (waitingFor: string) => Error,
  { seconds, signal, note }: Patience,
): Promise<Found> {
  const giveUpAt = performance.now() + seconds * 1000;
  let [told, toldAt] = ["", 0];
  for (;;) {
    const seen = await tolerant(look);
    if ("found" in seen) return seen.found;
    const { waitingFor } = seen;
    const now = performance.now();
    if (waitingFor !== told || now - toldAt > REMINDER * 1000) {
      note(`waiting: ${waitingFor}`);
      [told, toldAt] = [waitingFor, now];
    }
    if (now + PAUSE * 1000 > giveUpAt) throw tooLong(waitingFor);
    await sleep(PAUSE * 1000, undefined, { signal });
  }
}

async function tolerant<Found>(look: () => Promise<Look<Found>>): Promise<Look<Found>> {
  try {
    return await look();
  } catch (error) {
    if (error instanceof Unreachable) return { waitingFor: error.message };
    // What stands before a server that restarts, or has too much to do, says so.
    if (error instanceof Refusal && (error.status === 429 || error.status >= 500))
      return { waitingFor: `${error.message}: ${error.said.message}` };
    throw error;
  }
}
