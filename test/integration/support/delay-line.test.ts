import { expect } from "chai";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { startDelayLine, type DelayLine } from "#support/delay-line.ts";

describe("delay line", () => {
  let echo: Server;
  let line: DelayLine;
  let client: Socket;
  beforeEach(async () => {
    echo = createServer((socket) => socket.on("error", () => undefined).pipe(socket));
    await new Promise<void>((resolve) => echo.listen(0, "127.0.0.1", resolve));
    line = await startDelayLine({ target: { port: (echo.address() as AddressInfo).port }, latency: 20 });
    client = connect({ port: line.port, host: "127.0.0.1", noDelay: true });
  });
  afterEach(async () => {
    client.destroy();
    await line.close();
    echo.close();
  });
  const answer = () =>
    new Promise<string>((resolve) => client.once("data", (chunk: Buffer) => resolve(chunk.toString())));
  const ending = () =>
    new Promise<string>((resolve) => {
      client.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? ""));
      client.once("end", () => resolve("end"));
    });

  it("takes the latency each way, keeps the order and counts the turns", async () => {
    const since = performance.now();
    client.write("a");
    expect(await answer()).to.equal("a");
    expect(performance.now() - since).to.be.at.least(38);
    client.write("b");
    expect(await answer()).to.equal("b");
    expect([line.turns, line.bytesUp, line.connections]).to.deep.equal([2, 2, 1]);
  });

  it("resets connections when cut, and lets new ones through when healed", async () => {
    client.write("a");
    await answer();
    const ended = ending();
    line.cut();
    expect(await ended).to.equal("ECONNRESET");
    line.heal();
    client = connect({ port: line.port, host: "127.0.0.1" });
    client.write("b");
    expect(await answer()).to.equal("b");
  });

  it("swallows everything as a black hole, and says nothing", async () => {
    client.write("a");
    await answer();
    let heard = "";
    client.on("data", (chunk: Buffer) => (heard += chunk.toString()));
    client.on("end", () => (heard += "end"));
    line.blackhole();
    client.write("b");
    await sleep(80);
    expect(heard).to.equal("");
    const ended = ending();
    line.heal();
    expect(await ended).to.equal("ECONNRESET");
  });
});
