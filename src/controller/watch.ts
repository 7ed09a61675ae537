import { once } from "node:events";
import type { ServerResponse } from "node:http";
import type { Log } from "#api/log.ts";
import type { WatchLine, WatchRequest } from "#api/schemas.ts";
import { encodeDot } from "./cluster/dots.ts";
import type { Replica } from "./replica/replica.ts";

/** Who watches slower than the cluster changes is cut, and begins anew. */
const backlogLimit = 16 * 1024 * 1024;
const idleMs = 15_000;

/** The clients that watch the registers, and are told of soft changes. */
export interface Watches {
  /** Resolves when all that stands was told, however much it is and however slowly it is read. */
  readonly open: (request: WatchRequest, response: ServerResponse) => Promise<void>;
  /** Tells all of them that a node's liveness or a peer's state changed. */
  readonly tell: (about: "nodes" | "controllers" | "conflicts", id: string) => void;
  readonly close: () => void;
}

export function openWatches(replica: Replica, log: Log): Watches {
  const watching = new Map<ServerResponse, readonly string[]>();
  const send = (response: ServerResponse, line: WatchLine): void => {
    if (response.destroyed) return;
    response.write(`${JSON.stringify(line)}\n`);
    if (response.writableLength <= backlogLimit) return;
    log.warn("a watch was cut: its client reads slower than the cluster changes");
    response.destroy();
  };
  const lineOf = (key: string): WatchLine => {
    const register = replica.get(key);
    const value: unknown = JSON.parse(register?.text ?? "null");
    return { type: "register", key, value, dot: register ? encodeDot(register) : "absent" };
  };
  const isWanted = (prefixes: readonly string[], key: string): boolean =>
    prefixes.length === 0 || prefixes.some((prefix) => key.startsWith(prefix));
  const stop = replica.watch((keys) => {
    for (const [response, prefixes] of watching)
      for (const key of keys) if (isWanted(prefixes, key)) send(response, lineOf(key));
  });
  const idle = setInterval(() => {
    for (const response of watching.keys()) send(response, { type: "idle" });
  }, idleMs);
  idle.unref();
  /** At the client's pace: what stands may be more than may be unsent. A line says what is true when it is sent. */
  const tellAll = async (response: ServerResponse, prefixes: readonly string[]): Promise<void> => {
    const gone = new AbortController();
    response.once("close", () => gone.abort());
    const stands = [...replica.entries("")].map(([key]) => key).filter((key) => isWanted(prefixes, key));
    for (const key of stands) {
      if (response.destroyed) return;
      // One that was deleted meanwhile was told as a change.
      if (replica.get(key)) send(response, lineOf(key));
      if (response.writableNeedDrain) await once(response, "drain", { signal: gone.signal }).catch(() => undefined);
    }
  };
  return {
    async open({ prefixes, changesOnly }, response) {
      response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
      watching.set(response, prefixes);
      response.once("close", () => watching.delete(response));
      if (!changesOnly) await tellAll(response, prefixes);
      send(response, { type: "synced" });
    },
    tell(about, id) {
      for (const response of watching.keys()) send(response, { type: "soft", about, id });
    },
    close() {
      stop();
      clearInterval(idle);
      for (const response of watching.keys()) response.end();
    },
  };
}
