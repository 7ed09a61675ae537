import type { Duplex } from "node:stream";

/**
 * Lets everything that is written in one go leave in one system call. ssh2 writes the length, the body and the tag of
 * each packet for themselves; without Nagle's delay each of them would be a TCP segment that wakes the other side up.
 */
export function writeTogether(socket: Duplex): void {
  const write = socket.write.bind(socket) as (...given: unknown[]) => boolean;
  let isHeld = false;
  socket.write = (...given: unknown[]): boolean => {
    if (!isHeld) {
      isHeld = true;
      socket.cork();
      process.nextTick(() => {
        isHeld = false;
        socket.uncork();
      });
    }
    return write(...given);
  };
}
