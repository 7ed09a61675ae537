import { poll } from "#base/wait.ts";
import { KubeRefusal, Unreachable } from "./refusals.ts";

/** Seconds between two attempts. */
const PAUSE = 1;
/** Seconds until the same note is repeated. */
const REMINDER = 60;

/** The result of one attempt: found, or still waiting for something. */
export type PollResult<Found> = { readonly found: Found } | { readonly waitingFor: string };

/** The time limit of a wait, the signal that ends it, and the receiver of its notes. */
export interface PollLimits {
  readonly seconds: number;
  readonly signal: AbortSignal;
  readonly note: (text: string) => void;
}

/**
 * Repeats the attempt until it finds the thing. A server that does not answer, or is too busy, counts as not found: API servers restart.
 * @throws the error that `tooLate` makes of the last answer, once the time is up; errors of `attempt`
 */
export async function pollUntil<Found>(
  attempt: () => Promise<PollResult<Found>>,
  tooLate: (waitingFor: string) => Error,
  { seconds, signal, note }: PollLimits,
): Promise<Found> {
  let [lastNote, notedAt] = ["", 0];
  const once = async (): Promise<{ readonly found: Found } | undefined> => {
    const seen = await attemptTolerantly(attempt);
    if ("found" in seen) return seen;
    const now = performance.now();
    if (seen.waitingFor !== lastNote || now - notedAt > REMINDER * 1000) {
      note(`waiting: ${seen.waitingFor}`);
      [lastNote, notedAt] = [seen.waitingFor, now];
    }
    return undefined;
  };
  const seen = await poll(once, { everyMs: PAUSE * 1000, limitMs: seconds * 1000, signal });
  if (!seen) throw tooLate(lastNote);
  return seen.found;
}

async function attemptTolerantly<Found>(attempt: () => Promise<PollResult<Found>>): Promise<PollResult<Found>> {
  try {
    return await attempt();
  } catch (error) {
    if (error instanceof Unreachable) return { waitingFor: error.message };
    // An overloaded server, or the proxy before a restarting one, answers so.
    if (error instanceof KubeRefusal && (error.status === 429 || error.status >= 500))
      return { waitingFor: `${error.message}: ${error.answer.message}` };
    throw error;
  }
}
