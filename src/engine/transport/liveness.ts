import type { Duplex } from "node:stream";
import { realTimers, type Timers } from "#base/timers.ts";

/**
 * Calls `onSilence` once, when no byte has arrived for `limit` milliseconds; the returned function ends the watch. Any byte counts: on a
 * slow line, answers to keepalives wait behind a large transfer (F-2).
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
      // This process itself was suspended or busy: bytes that arrived meanwhile are not read yet.
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
