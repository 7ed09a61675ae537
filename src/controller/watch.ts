import type { ServerResponse } from "node:http";
import type { WatchLine, WatchRequest } from "#api/schemas.ts";
import { encodeDot } from "./cluster/dots.ts";
import type { Replica } from "./replica/replica.ts";

/** Who watches slower than the cluster changes is cut, and begins anew. */
const backlogLimit = 16 * 1024 * 1024;
const idleMs = 15_000;

/** The clients that watch the registers, and are told of soft changes. */
export interface Watches {
  readonly open: (request: WatchRequest, response: ServerResponse) => void;
  /** Tells all of them that a node's liveness or a peer's state changed. */
  readonly tell: (about: "nodes" | "controllers" | "conflicts", id: string) => void;
  readonly close: () => void;
}

export function openWatches(replica: Replica): Watches {
  const watching = new Map<ServerResponse, readonly string[]>();
  const send = (response: ServerResponse, line: WatchLine): void => {
    response.write(`${JSON.stringify(line)}\n`);
    if (response.writableLength > backlogLimit) response.destroy();
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
  return {
    open({ prefixes, changesOnly }, response) {
      response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
      if (!changesOnly)
        for (const [key] of replica.entries("")) if (isWanted(prefixes, key)) send(response, lineOf(key));
      send(response, { type: "synced" });
      watching.set(response, prefixes);
      response.once("close", () => watching.delete(response));
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
