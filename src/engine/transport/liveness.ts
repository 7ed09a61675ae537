import type { Duplex } from "node:stream";
import { realTimers, type Timers } from "#base/timers.ts";

/**
 * Calls back once when no byte was heard for `limit` milliseconds. Any byte counts as a sign of life: behind a
 * big upload over a slow line the answers to keepalives wait (F-2).
 */
export function watchLiveness(
  socket: Duplex,
  limit: number,
  onSilence: () => void,
  { now, after }: Timers = realTimers,
): () => void {
  let heard = now();
  let forget: () => void;
  const hear = () => (heard = now());
  const wait = (milliseconds: number) => {
    const due = now() + milliseconds;
    forget = after(milliseconds, () => {
      const late = now() - due;
      const silence = now() - heard;
      // This process itself stood still (suspended, or busy): bytes that came meanwhile are not read yet.
      if (late > 1000) return wait(limit / 3);
      if (silence >= limit) onSilence();
      else wait(limit - silence);
    });
  };
  socket.on("data", hear);
  wait(limit);
  return () => {
    forget();
    socket.off("data", hear);
  };
}
