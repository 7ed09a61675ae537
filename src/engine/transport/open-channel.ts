import { DeadlinePassed, orAborted, withDeadline } from "./deadline.ts";
import { HostUnreachable, interrupted } from "./host-problems.ts";

/** Milliseconds for the server to open a channel; a loaded machine can need seconds to fork. */
const openLimit = 30_000;

/**
 * Waits until a server has opened a channel; `dispose` gets a channel that comes too late.
 * @throws KcoreError HOST_UNREACHABLE when it takes too long, INTERRUPTED; the error of `opening`
 */
export async function channelOpened<T>(
  { host, what, caller }: { readonly host: string; readonly what: string; readonly caller: AbortSignal | undefined },
  opening: Promise<T>,
  dispose?: (late: T) => void,
): Promise<T> {
  try {
    return await withDeadline(openLimit, caller, (signal) => orAborted(opening, signal, dispose));
  } catch (error) {
    if (error instanceof DeadlinePassed)
      throw new HostUnreachable("timeout", { message: `${host} does not open a channel: ${error.message}` }, error);
    if (caller?.aborted) throw interrupted(what, error);
    throw error;
  }
}
