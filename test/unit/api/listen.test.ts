import { expect } from "chai";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { listenAt, plainAddress } from "#api/listen.ts";

describe("a daemon that listens at ::", () => {
  const reached = async (port: number, host: string): Promise<boolean> => {
    const socket = connect(port, host);
    const isConnected = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isConnected;
  };

  it("answers at IPv6 and IPv4 addresses", async () => {
    const server = createServer((socket) => socket.destroy());
    const port = await listenAt(server, { host: "::", port: 0 });
    expect([await reached(port, "::1"), await reached(port, "127.0.0.1")]).to.deep.equal([true, true]);
    server.close();
  });

  it("falls back to 0.0.0.0 on a machine without IPv6, and falls back for no other address", async () => {
    const asked: string[] = [];
    const server = createServer();
    const listen = server.listen.bind(server);
    server.listen = ((options: { host: string; port: number }) => {
      asked.push(options.host);
      if (options.host !== "::") return listen(options);
      const error = Object.assign(new Error("no IPv6"), { code: "EAFNOSUPPORT" });
      queueMicrotask(() => server.emit("error", error));
      return server;
    }) as Server["listen"];
    await listenAt(server, { host: "::", port: 0 });
    expect(asked).to.deep.equal(["::", "0.0.0.0"]);
    server.close();
    const error = await listenAt(createServer(), { host: "192.0.2.1", port: 1 }).catch((one: unknown) => one);
    expect((error as NodeJS.ErrnoException).code).to.equal("EADDRNOTAVAIL");
  });

  it("shows IPv4 addresses without the IPv6 prefix", () =>
    expect(["::ffff:192.0.2.1", "2001:db8::1", undefined].map(plainAddress)).to.deep.equal([
      "192.0.2.1",
      "2001:db8::1",
      undefined,
    ]));
});
