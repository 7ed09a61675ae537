import { connect, createServer, type AddressInfo, type Socket } from "node:net";

/** A TCP line to a server on this machine that breaks at a chosen byte. */
export interface CuttingLine {
  readonly port: number;
  /** Connections accepted so far. */
  readonly connections: number;
  /** The next connection is reset after this many bytes from the client (`up`) or the server (`down`) passed. */
  cutNext(direction: "up" | "down", bytes: number): void;
  close(): Promise<void>;
}

/** Starts a line on a free loopback port; connections are whole unless `cutNext` was called before. */
export async function startCuttingLine(target: number): Promise<CuttingLine> {
  let connections = 0;
  let next: { direction: "up" | "down"; bytes: number } | undefined;
  const open = new Set<Socket>();
  const server = createServer({ noDelay: true }, (client) => {
    connections++;
    const upstream = connect({ host: "127.0.0.1", port: target, noDelay: true });
    const cut = next;
    next = undefined;
    const reset = (): void => {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    };
    const pump = (from: Socket, to: Socket, limit: number | undefined): void => {
      let passed = 0;
      open.add(from);
      from.on("data", (chunk: Buffer) => {
        const left = limit === undefined ? chunk.length : limit - passed;
        passed += chunk.length;
        to.write(chunk.subarray(0, left));
        // What was let through arrives before the end does.
        if (limit !== undefined && passed >= limit) setTimeout(reset, 5);
      });
      from.on("end", () => to.end());
      from.on("error", reset);
      from.on("close", () => open.delete(from));
    };
    pump(client, upstream, cut?.direction === "up" ? cut.bytes : undefined);
    pump(upstream, client, cut?.direction === "down" ? cut.bytes : undefined);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    get connections() {
      return connections;
    },
    cutNext: (direction, bytes) => {
      next = { direction, bytes };
    },
    async close() {
      for (const socket of open) socket.resetAndDestroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
