import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export interface DelayLineOptions {
  readonly target: { readonly host?: string; readonly port: number };
  /** Milliseconds that each byte takes in one direction: half of a round trip. */
  readonly latency?: number;
}

/** A TCP line between a client and a server on this machine that can be slow, cut, or silently dead. */
export interface DelayLine {
  /** The loopback port that clients connect to. */
  readonly port: number;
  /** Connections accepted so far. */
  readonly connections: number;
  /** Round trips: bursts of the client's bytes, each after an answer of the server. */
  readonly turns: number;
  /** Bytes from clients to the server. */
  readonly bytesUp: number;
  /** The number of times that bytes of the server, or its end, reached a client. */
  readonly arrivals: number;
  /** Changes the latency of later bytes. */
  setLatency(milliseconds: number): void;
  /** Limits the rate of clients' bytes from now on; undefined: no limit. */
  setRate(bytesPerSecond: number | undefined): void;
  /** Resets all connections, and refuses new ones (closes them at once), until `heal`. */
  cut(): void;
  /** The next connection is reset after this many bytes from the client (`up`) or the server (`down`) passed. */
  cutNext(direction: Direction, bytes: number): void;
  /** Drops all bytes and ends in both directions, also of new connections: a half-open line (F-2). */
  blackhole(): void;
  /** Lets new connections work again. Connections from before `blackhole` are reset, since their bytes stay lost. */
  heal(): void;
  close(): Promise<void>;
}

type Direction = "up" | "down";
type Mode = "open" | "cut" | "blackhole";

/** Starts a line on a free loopback port. */
export async function startDelayLine({ target, latency = 0 }: DelayLineOptions): Promise<DelayLine> {
  let mode: Mode = "open";
  let delay = latency;
  let rate: number | undefined;
  let [connections, turns, bytesUp, arrivals] = [0, 0, 0, 0];
  let clientSpeaks = false;
  let next: Partial<Record<Direction, number>> = {};
  const pairs = new Set<readonly [Socket, Socket]>();

  const reset = () => {
    for (const pair of pairs) for (const socket of pair) socket.resetAndDestroy();
    pairs.clear();
  };
  const pump = (from: Socket, to: Socket, onChunk: (chunk: Buffer) => void, isUp: boolean, limit = Infinity) => {
    let passed = 0;
    const later = (work: () => void) => {
      const guarded = () => mode !== "blackhole" && !to.destroyed && work();
      if (delay === 0) guarded();
      // Timers of equal length fire in the order they were set, so bytes stay in order.
      else setTimeout(guarded, delay);
    };
    from.on("data", (chunk: Buffer) => {
      if (mode === "blackhole") return;
      onChunk(chunk);
      const part = chunk.subarray(0, Math.max(0, limit - passed));
      passed += chunk.length;
      // Bytes that passed arrive before the connection's end does.
      if (passed >= limit) setTimeout(() => [from, to].forEach((socket) => socket.resetAndDestroy()), 5);
      later(() => {
        if (!isUp) arrivals++;
        const isFull = !to.write(part);
        const due = isUp && rate !== undefined ? (chunk.length * 1000) / rate : 0;
        if (!isFull && due === 0) return;
        from.pause();
        if (due > 0) setTimeout(() => from.resume(), due);
        else to.once("drain", () => from.resume());
      });
    });
    from.on("end", () =>
      later(() => {
        if (!isUp) arrivals++;
        to.end();
      }),
    );
    from.on("error", () => mode !== "blackhole" && to.resetAndDestroy());
    from.on("close", () => later(() => to.destroySoon()));
  };

  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    connections++;
    if (mode === "cut") {
      client.on("error", () => undefined);
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({
      host: target.host ?? "127.0.0.1",
      port: target.port,
      noDelay: true,
      allowHalfOpen: true,
    });
    const pair = [client, upstream] as const;
    const limits = next;
    next = {};
    pairs.add(pair);
    const countUp = (chunk: Buffer): void => {
      bytesUp += chunk.length;
      if (!clientSpeaks) turns++;
      clientSpeaks = true;
    };
    pump(client, upstream, countUp, true, limits.up);
    pump(upstream, client, () => (clientSpeaks = false), false, limits.down);
    client.on("close", () => mode !== "blackhole" && pairs.delete(pair));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });

  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    get turns() {
      return turns;
    },
    get bytesUp() {
      return bytesUp;
    },
    get arrivals() {
      return arrivals;
    },
    setLatency: (milliseconds) => {
      delay = milliseconds;
    },
    setRate: (bytesPerSecond) => {
      rate = bytesPerSecond;
    },
    cut() {
      mode = "cut";
      reset();
    },
    cutNext: (direction, bytes) => {
      next = { [direction]: bytes };
    },
    blackhole: () => {
      mode = "blackhole";
    },
    heal() {
      if (mode === "blackhole") reset();
      mode = "open";
    },
    async close() {
      mode = "cut";
      reset();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
