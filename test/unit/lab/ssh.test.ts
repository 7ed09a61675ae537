import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { expect } from "chai";
import { sendsGreeting } from "#lab/ssh.ts";

describe("the SSH server of a booting node", () => {
  async function greets(answer: (socket: Socket) => void): Promise<boolean> {
    const server = createServer(answer).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
      return await sendsGreeting("127.0.0.1", port);
    } finally {
      server.close();
    }
  }

  it("is up if it greets slowly", async () =>
    expect(await greets((socket) => setTimeout(() => socket.end("SSH-2.0-slow\r\n"), 600))).to.equal(true));

  it("is not up if it closes the connection, or nothing listens", async () => {
    expect(await greets((socket) => socket.end())).to.equal(false);
    expect(await sendsGreeting("127.0.0.1", 1)).to.equal(false);
  });
});
