import type { Server } from "node:https";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Role } from "#pki/identity.ts";
import type { KnownCaller } from "./caller.ts";

/** How many connections one may hold (S-17). */
export interface ConnectionLimits {
  /** Handshakes that are not finished, of one address and of all. */
  readonly pendingPerAddress: number;
  readonly pending: number;
  readonly perKey: Readonly<Record<Role, number>>;
}

/** A handshake that takes longer is given up when somebody else comes from there. */
const patienceMs = 1_000;

/** Open files that a controller needs beside those who ask: its store, its peers, what it reads now and then. */
const reservedFiles = 96;

/** How many connections there may be where so many files may be open: whoever comes, the store can be written (F-30). */
export function connectionsFor(openFiles = Infinity): number {
  return Math.max(16, Math.min(4096, openFiles - reservedFiles));
}

/**
 * The limits of a server that holds `most` connections at all: handshakes that go nowhere leave at least half of the room to
 * those that do, and one address leaves half of theirs to the others. An unfinished handshake costs 75 KB of memory.
 */
export function limitsFor(most: number): ConnectionLimits {
  const pending = Math.min(256, Math.floor(most / 2));
  return {
    pendingPerAddress: Math.floor(pending / 2),
    pending,
    perKey: { node: 16, controller: 64, operator: 512 },
  };
}

/** The open connections, by who is on them. */
export interface Connections {
  /** Notes who is on a connection; false: this key has too many, and the connection must end. */
  readonly admit: (socket: TLSSocket, caller: KnownCaller) => boolean;
  /** Cuts every connection whose caller is no longer welcome; gives who was cut. */
  readonly cut: (isWelcome: (caller: KnownCaller) => boolean) => readonly KnownCaller[];
  readonly count: () => number;
}

export function watchConnections(server: Server, limits: ConnectionLimits, monotonic: () => number): Connections {
  /** Handshakes under way, by address: when each began, the oldest first. */
  const pending = new Map<string, Map<Socket, number>>();
  let pendingCount = 0;
  const open = new Map<TLSSocket, KnownCaller>();
  const perKey = new Map<string, number>();

  const settle = (socket: Socket, address: string): void => {
    const same = pending.get(address);
    if (same?.delete(socket) !== true) return;
    pendingCount--;
    if (same.size === 0) pending.delete(address);
  };
  const countOf = (address: string): number => pending.get(address)?.size ?? 0;
  /** Whoever opens connections and never finishes a handshake takes room from himself, and from nobody else. */
  const makeRoom = (newcomer: string): boolean => {
    const isOver = countOf(newcomer) >= limits.pendingPerAddress;
    if (!isOver && pendingCount < limits.pending) return true;
    const from = isOver ? newcomer : busiest(pending);
    const [[oldest, since] = []] = pending.get(from) ?? [];
    // A flood is refused at the door, where it costs next to nothing; only what has stood still makes place for it.
    if (!oldest || (countOf(from) <= countOf(newcomer) && monotonic() - (since ?? 0) < patienceMs)) return false;
    settle(oldest, from);
    oldest.destroy();
    return true;
  };
  server.prependListener("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    if (!makeRoom(address)) return void socket.destroy();
    const same = pending.get(address) ?? new Map<Socket, number>();
    pending.set(address, same.set(socket, monotonic()));
    pendingCount++;
    socket.once("close", () => settle(socket, address));
  });
  server.on("secureConnection", (socket: TLSSocket) => {
    // The encrypted socket and the plain one below have the same remote port.
    const address = socket.remoteAddress ?? "";
    for (const plain of pending.get(address)?.keys() ?? [])
      if (plain.remotePort === socket.remotePort) {
        settle(plain, address);
        break;
      }
  });

  return {
    count: () => open.size,
    admit(socket, caller) {
      if (open.has(socket)) return true;
      const count = perKey.get(caller.key) ?? 0;
      if (count >= limits.perKey[caller.identity.role]) return false;
      perKey.set(caller.key, count + 1);
      open.set(socket, caller);
      socket.once("close", () => {
        open.delete(socket);
        const left = (perKey.get(caller.key) ?? 1) - 1;
        if (left > 0) perKey.set(caller.key, left);
        else perKey.delete(caller.key);
      });
      return true;
    },
    cut(isWelcome) {
      const gone: KnownCaller[] = [];
      for (const [socket, caller] of open) {
        if (isWelcome(caller)) continue;
        gone.push(caller);
        socket.destroy();
      }
      return gone;
    },
  };
}

function busiest(pending: ReadonlyMap<string, ReadonlyMap<Socket, number>>): string {
  let found = "";
  for (const [address, sockets] of pending) if (sockets.size > (pending.get(found)?.size ?? 0)) found = address;
  return found;
}
