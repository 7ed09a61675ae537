import type { ServerResponse } from "node:http";
import type { Log } from "#api/log.ts";
import type { WatchLine, WatchRequest } from "#api/controller-schemas.ts";
import { encodeDot } from "./cluster/dots.ts";
import { Busy } from "./cluster/refused.ts";
import type { Replica } from "./replica/create-replica.ts";

/** The most unsent bytes of one watch. Above them the watch is cut, and its client begins anew. */
const backlogLimit = 16 * 1024 * 1024;
/** The most unsent bytes of all watches together. Above them the slowest watches are cut. */
const backlogOfAll = 128 * 1024 * 1024;
/** The most watches of one key. */
const watchesOfKey = 64;
const idleMs = 15_000;

/** Clients that watch registers, and are notified of changes of soft state. */
export type Watches = ReturnType<typeof openWatches>;

interface Watch {
  readonly key: string;
  readonly prefixes: readonly string[];
}

export function openWatches(replica: Replica, log: Log) {
  const watching = new Map<ServerResponse, Watch>();
  const cut = (response: ServerResponse): void => {
    log.warn("a watch was cut: its client reads slower than the cluster changes");
    watching.delete(response);
    response.destroy();
  };
  const send = (response: ServerResponse, line: string): void => {
    if (response.destroyed) return;
    response.write(line);
    if (response.writableLength > backlogLimit) cut(response);
  };
  const textLine = (line: WatchLine): string => `${JSON.stringify(line)}\n`;
  /** The line about a register. Its value is inserted as text, since it is JSON already. */
  const lineOf = (key: string): string => {
    const register = replica.get(key);
    const head = JSON.stringify({ type: "register", key, dot: register ? encodeDot(register) : "absent" });
    return `${head.slice(0, -1)},"value":${register?.text ?? "null"}}\n`;
  };
  const isWanted = ({ prefixes }: Watch, key: string): boolean =>
    prefixes.length === 0 || prefixes.some((prefix) => key.startsWith(prefix));
  const sendAll = (line: string, isReceiver: (watch: Watch) => boolean = () => true): void => {
    for (const [response, watch] of watching) if (isReceiver(watch)) send(response, line);
  };
  const stop = replica.watch((keys) => {
    if (watching.size === 0) return;
    for (const key of keys) sendAll(lineOf(key), (watch) => isWanted(watch, key));
    cutSlowest(watching.keys(), cut);
  });
  const idle = setInterval(() => sendAll(textLine({ type: "idle" })), idleMs);
  idle.unref();
  return {
    /** Opens a watch. `key`: the client's public key. @throws Busy when the client has too many watches already */
    open(key: string, { prefixes }: WatchRequest, response: ServerResponse): void {
      const same = [...watching.values()].filter((watch) => watch.key === key);
      if (same.length >= watchesOfKey) throw new Busy(503, "too many watches with this key", 15);
      response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
      // The client reads the present state once the answer has begun.
      response.flushHeaders();
      watching.set(response, { key, prefixes });
      response.once("close", () => watching.delete(response));
    },
    /** Notifies all clients that a node's liveness or a peer's state changed. */
    notify: (about: "nodes" | "controllers", id: string): void => sendAll(textLine({ type: "soft", about, id })),
    close(): void {
      stop();
      clearInterval(idle);
      for (const response of watching.keys()) response.end();
    },
  };
}

function cutSlowest(watching: Iterable<ServerResponse>, cut: (response: ServerResponse) => void): void {
  const responses = [...watching];
  let sum = responses.reduce((all, { writableLength }) => all + writableLength, 0);
  if (sum <= backlogOfAll) return;
  for (const response of responses.toSorted((a, b) => b.writableLength - a.writableLength)) {
    if (sum <= backlogOfAll) return;
    sum -= response.writableLength;
    cut(response);
  }
}
