import { poll } from "#base/wait.ts";
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
  let [told, toldAt] = ["", 0];
  const once = async (): Promise<{ readonly found: Found } | undefined> => {
    const seen = await tolerant(look);
    if ("found" in seen) return seen;
    const now = performance.now();
    if (seen.waitingFor !== told || now - toldAt > REMINDER * 1000) {
      note(`waiting: ${seen.waitingFor}`);
      [told, toldAt] = [seen.waitingFor, now];
    }
    return undefined;
  };
  const seen = await poll(once, { everyMs: PAUSE * 1000, limitMs: seconds * 1000, signal });
  if (!seen) throw tooLong(told);
  return seen.found;
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
