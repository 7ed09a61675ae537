import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import { expect } from "chai";
import { portOf, startSlowLine } from "../../../bench/push/slow-line.ts";

/** Long enough for what a busy machine adds to be a part of it. */
const rtt = 300;

describe("the line of bench:push", () => {
  let server: Server;
  let line: Server;
  let sent: number;
  let sockets: Socket[];

  beforeEach(async () => {
    [sent, sockets] = [0, []];
    // It greets, and tells of the last byte ("!") of what comes.
    server = createServer((socket) => {
      sockets.push(socket);
      socket.write("hello");
      socket.on("data", (chunk: Buffer) => chunk.includes("!") && socket.write("got it"));
      socket.on("error", () => undefined);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    line = await startSlowLine("127.0.0.1", portOf(server), rtt, (bytes) => (sent += bytes));
  });
  afterEach(() => {
    for (const socket of sockets) socket.destroy();
    line.close();
    server.close();
  });

  async function greeted(): Promise<Socket> {
    const client = connect({ port: portOf(line), host: "127.0.0.1", noDelay: true });
    sockets.push(client);
    await once(client, "data");
    return client;
  }

  /** Round trips that it takes: the least of several, as a busy machine only adds to them. */
  async function roundTrips(work: (since: () => void) => Promise<unknown>): Promise<number> {
    let least = Infinity;
    for (let tries = 0; tries < 3; tries++) {
      let start = performance.now();
      await work(() => (start = performance.now()));
      least = Math.min(least, (performance.now() - start) / rtt);
    }
    return least;
  }

  const answered = (bytes: number) =>
    roundTrips(async (since) => {
      const client = await greeted();
      since();
      client.write(`${"x".repeat(bytes - 1)}!`);
      await once(client, "data");
    });

  it("takes two round trips to the greeting: one to connect, half for the server to know, half for its words", async () => {
    expect(await roundTrips(greeted)).to.be.within(1.95, 2.9);
  });

  it("takes one round trip for what fits into the first window, and counts it", async () => {
    expect(await answered(10_000)).to.be.within(0.95, 1.9);
    expect(sent).to.equal(30_000);
  });

  it("takes two more when three windows are needed, each twice the one before", async () => {
    // 14.6, 29.2 and the rest of at most 58.4 kB.
    expect(await answered(90_000)).to.be.within(2.95, 3.9);
  });
});
