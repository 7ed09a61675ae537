import { expect } from "chai";
import { once } from "node:events";
import { connect, createServer, type Server } from "node:net";
import { listenAt, plainAddress } from "#api/listen.ts";

describe("where daemons listen", () => {
  const reached = async (port: number, host: string): Promise<boolean> => {
    const socket = connect(port, host);
    const isThere = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isThere;
  };

  it("O6: is every address, of IPv6 and of IPv4", async () => {
    const server = createServer((socket) => socket.destroy());
    const port = await listenAt(server, { host: "::", port: 0 });
    expect([await reached(port, "::1"), await reached(port, "127.0.0.1")]).to.deep.equal([true, true]);
    server.close();
  });

  it("O6: is every address of IPv4 on a machine without IPv6, and no other one than was asked for", async () => {
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

  it("O6: writes addresses of IPv4 as such", () =>
    expect(["::ffff:192.0.2.1", "2001:db8::1", undefined].map(plainAddress)).to.deep.equal([
      "192.0.2.1",
      "2001:db8::1",
      undefined,
    ]));
});
