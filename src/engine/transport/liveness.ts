import type { Duplex } from "node:stream";

/**
 * Calls back once when nothing at all was heard for `limit` milliseconds. Any byte counts as a sign of life, so that a
 * big upload over a slow line, behind which the answers to keepalives wait, does not look dead (F-2).
 */
export function watchLiveness(socket: Duplex, limit: number, onSilence: () => void): () => void {
  let heard = performance.now();
  let timer: NodeJS.Timeout;
  const hear = () => (heard = performance.now());
  const wait = (milliseconds: number) => {
    const due = performance.now() + milliseconds;
    timer = setTimeout(() => {
      const late = performance.now() - due;
      const silence = performance.now() - heard;
      // This process itself stood still (suspended, or busy): what came meanwhile is not read yet.
      if (late > 1000) return wait(limit / 3);
      if (silence >= limit) onSilence();
      else wait(limit - silence);
    }, milliseconds);
  };
  socket.on("data", hear);
  wait(limit);
  return () => {
    clearTimeout(timer);
    socket.off("data", hear);
  };
}
