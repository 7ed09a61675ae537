import type { Server } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";

/** The limits of handshakes (S-17). */
export interface HandshakeLimits {
  /** The most handshakes under way, of one address and of all. */
  readonly pendingPerAddress: number;
  readonly pending: number;
  /** The most connections that wait for a handshake, of one address and of all: each costs little more than an open file. */
  readonly waitingPerAddress: number;
  readonly waiting: number;
}

/** The time after which a handshake is aborted for a waiting connection of its address, or of an address with as many handshakes. */
const oldHandshakeMs = 4_000;
/** The longest wait for the start of a handshake. */
const longestWaitMs = 15_000;

/**
 * Starts the handshakes of new connections, a limited number at a time. A client that never finishes its handshakes takes room from its
 * own address alone; a client that opens many connections at once waits its turn. Connections above the limits are closed, since nothing
 * can be answered before the handshake.
 */
export function limitHandshakes(
  server: Server,
  limits: HandshakeLimits,
  monotonic: () => number,
): { readonly close: () => void } {
  /** Handshakes under way by address, the oldest first, with their start times. */
  const pending = new Map<string, Map<Socket, number>>();
  let pendingCount = 0;
  /** Waiting connections by address, the oldest first. */
  const waiting = new Map<string, Set<Socket>>();
  let waitingCount = 0;
  let timer: NodeJS.Timeout | undefined;
  const listeners = server.listeners("connection") as ((this: Server, socket: Socket) => void)[];
  server.removeAllListeners("connection");

  const countOf = (address: string): number => pending.get(address)?.size ?? 0;
  const hasRoom = (address: string): boolean =>
    countOf(address) < limits.pendingPerAddress && pendingCount < limits.pending;
  const finished = (socket: Socket, address: string): void => {
    const ofAddress = pending.get(address);
    if (ofAddress?.delete(socket) !== true) return;
    pendingCount--;
    if (ofAddress.size === 0) pending.delete(address);
    startWaiting();
  };
  const start = (socket: Socket, address: string): void => {
    const ofAddress = pending.get(address) ?? new Map<Socket, number>();
    pending.set(address, ofAddress.set(socket, monotonic()));
    pendingCount++;
    socket.once("close", () => finished(socket, address));
    for (const listener of listeners) listener.call(server, socket);
  };
  const leave = (socket: Socket, address: string): boolean => {
    const ofAddress = waiting.get(address);
    if (ofAddress?.delete(socket) !== true) return false;
    waitingCount--;
    if (ofAddress.size === 0) waiting.delete(address);
    return true;
  };
  /** Starts waiting handshakes, those of addresses with the fewest handshakes under way first. */
  const startWaiting = (): void => {
    const addresses = [...waiting.keys()].toSorted((a, b) => countOf(a) - countOf(b));
    for (const address of addresses)
      for (const socket of waiting.get(address) ?? []) {
        if (!hasRoom(address)) break;
        leave(socket, address);
        start(socket, address);
      }
  };
  /**
   * Makes room for a handshake: aborts the oldest one of the busiest address, or of the newcomer's own address if that is at its
   * limit. False if there is no room.
   */
  const makeRoom = (newcomer: string): boolean => {
    if (hasRoom(newcomer)) return true;
    const from = countOf(newcomer) >= limits.pendingPerAddress ? newcomer : busiest(pending);
    const [[oldest, since] = []] = pending.get(from) ?? [];
    // Between addresses with equally many handshakes, only a handshake older than `oldHandshakeMs` is aborted.
    if (!oldest || (countOf(from) <= countOf(newcomer) && monotonic() - (since ?? 0) < oldHandshakeMs)) return false;
    oldest.destroy();
    finished(oldest, from);
    return hasRoom(newcomer);
  };
  const checkLater = (): void => {
    timer ??= setTimeout(() => {
      timer = undefined;
      for (const address of waiting.keys()) if (makeRoom(address)) startWaiting();
      if (waitingCount > 0) checkLater();
    }, oldHandshakeMs / 16).unref();
  };
  const wait = (socket: Socket, address: string): void => {
    const ofAddress = waiting.get(address) ?? new Set<Socket>();
    if (ofAddress.size >= limits.waitingPerAddress || waitingCount >= limits.waiting) return void socket.destroy();
    waiting.set(address, ofAddress.add(socket));
    waitingCount++;
    const tooLong = setTimeout(() => {
      if (leave(socket, address)) socket.destroy();
    }, longestWaitMs).unref();
    socket.once("error", () => socket.destroy());
    socket.once("close", () => {
      clearTimeout(tooLong);
      leave(socket, address);
    });
    checkLater();
  };

  server.on("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    // Connections of the same address that wait already go first.
    if (!waiting.has(address) && makeRoom(address)) start(socket, address);
    else wait(socket, address);
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    // The TLS socket and the TCP socket below it have the same remote port.
    const address = socket.remoteAddress ?? "";
    for (const plain of pending.get(address)?.keys() ?? [])
      if (plain.remotePort === socket.remotePort) {
        finished(plain, address);
        break;
      }
  });
  return {
    close() {
      clearTimeout(timer);
      for (const sockets of waiting.values()) for (const socket of sockets) socket.destroy();
    },
  };
}

function busiest(pending: ReadonlyMap<string, ReadonlyMap<Socket, number>>): string {
  let found = "";
  for (const [address, sockets] of pending) if (sockets.size > (pending.get(found)?.size ?? 0)) found = address;
  return found;
}
