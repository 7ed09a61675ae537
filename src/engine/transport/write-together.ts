import type { Duplex } from "node:stream";

/**
 * Joins all writes of one turn of the event loop into one system call. ssh2 writes length, body and tag of each packet one by one; without
 * Nagle's delay, each would be a TCP segment that wakes up the other side.
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
