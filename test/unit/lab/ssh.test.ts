import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { expect } from "chai";
import { sendsGreeting } from "#lab/ssh.ts";

describe("a node that boots", () => {
  async function ask(answer: (socket: Socket) => void): Promise<boolean> {
    const server = createServer(answer).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    try {
      return await sendsGreeting("127.0.0.1", port);
    } finally {
      server.close();
    }
  }

  it("is there when its SSH server takes a call and is slow to speak", async () =>
    expect(await ask((socket) => setTimeout(() => socket.end("SSH-2.0-slow\r\n"), 600))).to.equal(true));

  it("is not when the server hangs up, or nobody listens", async () => {
    expect(await ask((socket) => socket.end())).to.equal(false);
    expect(await sendsGreeting("127.0.0.1", 1)).to.equal(false);
  });
});
