import type { TLSSocket } from "node:tls";
import type { MemberRole } from "#pki/identity.ts";
import { Busy } from "../cluster/refused.ts";
import type { KnownCaller } from "./caller.ts";
import type { HandshakeLimits } from "./handshake-limits.ts";

/** The maximum number of connections whose handshake is done, of all callers and of one key by its role (S-17). */
export interface ConnectionLimits {
  readonly all: number;
  readonly perKey: Readonly<Record<MemberRole, number>>;
}

/** Open files that a controller needs beside its callers' connections: for its store, its peers and occasional reads. */
const reservedFiles = 96;

/** The most connections of a controller: room for 10,000 nodes' agents, should it be the only one left. */
const mostConnections = 12_288;

/** The maximum number of connections for so many open files: however many callers there are, the store can be written (F-30). */
export function maxConnectionsFor(openFiles = Infinity): number {
  return Math.max(16, Math.min(mostConnections, openFiles - reservedFiles));
}

/** The connections that are accepted only to answer that there are too many. */
const refusedConnections = 64;

/**
 * The limits of a server with at most `most` connections. At most half of them are unfinished handshakes, which cost 75 KB of memory
 * each. At most a quarter of these belong to one address: the fewer at a time, the sooner each is done.
 */
export function limitsFor(most: number): ConnectionLimits & HandshakeLimits {
  const pending = Math.min(256, Math.floor(most / 2));
  const waiting = Math.min(1024, Math.floor(most / 4));
  return {
    pendingPerAddress: Math.floor(pending / 4),
    pending,
    waitingPerAddress: Math.floor(waiting / 2),
    waiting,
    all: most - Math.min(refusedConnections, Math.floor(most / 4)),
    perKey: { node: 16, controller: 64, operator: 512 },
  };
}

/** The open connections, by their callers. */
export type Connections = ReturnType<typeof watchConnections>;

export function watchConnections(limits: ConnectionLimits) {
  const open = new Map<TLSSocket, KnownCaller>();
  const perKey = new Map<string, number>();
  const silent = new Map<TLSSocket, string>();
  const silentOf = new Map<string, number>();
  const endSilence = (socket: TLSSocket): void => {
    const key = silent.get(socket);
    if (key !== undefined && silent.delete(socket)) countDown(silentOf, key);
  };
  return {
    /** Counts a new connection of a key; false if the key has too many connections already that have sent no request. */
    arrived(socket: TLSSocket, key: string, role: MemberRole): boolean {
      const count = silentOf.get(key) ?? 0;
      if (count >= limits.perKey[role]) return false;
      silentOf.set(key, count + 1);
      silent.set(socket, key);
      socket.once("close", () => endSilence(socket));
      return true;
    },
    count: (): number => open.size,
    /** Whether the connection was admitted. */
    has: (socket: TLSSocket): boolean => open.has(socket),
    /** Admits a connection at its first request. @throws Busy if its key or all have too many: then the connection must end */
    admit(socket: TLSSocket, caller: KnownCaller): void {
      if (open.has(socket)) return;
      endSilence(socket);
      const count = perKey.get(caller.key) ?? 0;
      if (count >= limits.perKey[caller.identity.role]) throw new Busy(429, "too many connections with this key");
      if (open.size >= limits.all) throw new Busy(503, "too many connections");
      perKey.set(caller.key, count + 1);
      open.set(socket, caller);
      socket.once("close", () => {
        open.delete(socket);
        countDown(perKey, caller.key);
      });
    },
    /** Closes every connection whose caller is not welcome any more; returns these callers. */
    cut(isWelcome: (caller: KnownCaller) => boolean): readonly KnownCaller[] {
      const closed: KnownCaller[] = [];
      for (const [socket, caller] of open) {
        if (isWelcome(caller)) continue;
        closed.push(caller);
        socket.destroy();
      }
      return closed;
    },
  };
}

function countDown(counts: Map<string, number>, key: string): void {
  const count = (counts.get(key) ?? 1) - 1;
  if (count > 0) counts.set(key, count);
  else counts.delete(key);
}
