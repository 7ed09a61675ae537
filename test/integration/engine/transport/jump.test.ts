import { expect } from "chai";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { rejectionOf } from "#support/rejection.ts";
import { makeKey, type SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

describe("jump hosts on real sshds", () => {
  let outer: SshServer;
  let inner: SshServer;
  let target: SshServer;
  let transport: Transport;
  let hops: Endpoint[];
  before(async () => {
    [outer, inner, target] = await Promise.all([startSshd(), startSshd(), startSshd()]);
    transport = createTransport({ home: target.folder, knownHostsFiles: [] });
    hops = [outer.endpoint({ name: "outer" }), inner.endpoint({ name: "inner" })];
  });
  after(async () => {
    await transport?.close();
    await Promise.all([outer, inner, target].map((server) => server?.stop()));
  });

  const output = async (endpoint: Endpoint, command: string) => {
    const host = await transport.connect(endpoint);
    const printed = await text((await host.exec(command)).stdout);
    await host.close();
    return printed;
  };

  it("are chained, each verified by its own pins and entered by its own key (S-2, S-9)", async () => {
    const printed = await output(
      target.endpoint({ jump: hops }),
      "pwd; echo ${SSH_AUTH_SOCK:-no agent}; echo $SSH_CONNECTION",
    );
    expect(printed)
      .to.include(`${target.home("root")}\nno agent\n`)
      .and.include(` ${target.port}\n`);
    expect(await outer.log()).to.include("Accepted publickey");
    expect(await inner.log()).to.include("Accepted publickey");
  });

  it("are connected to once for all nodes behind them", async () => {
    const before = (await outer.log()).split("Accepted publickey").length;
    const nodes = Array.from({ length: 6 }, () => output(target.endpoint({ jump: hops }), "echo here"));
    expect(await Promise.all(nodes)).to.deep.equal(Array.from({ length: 6 }, () => "here\n"));
    const logins = (await outer.log()).split("Accepted publickey").length - before;
    expect(logins).to.be.at.most(1);
  });

  it("are refused and named when their key has changed (S-1)", async () => {
    const file = join(outer.folder, "other");
    const hostKeys = [await makeKey(file)];
    const jump = [outer.endpoint({ name: "outer", hostKeys })];
    const error = await rejectionOf(transport.connect(target.endpoint({ name: "n1", jump })));
    expect(error.problems[0]?.code).to.equal("HOST_KEY_CHANGED");
    expect(error.message).to.include("outer").and.not.include("n1");
  });

  it("do not hide a changed key of the node (S-1)", async () => {
    const hostKeys = [await makeKey(join(outer.folder, "other2"))];
    const error = await rejectionOf(transport.connect(target.endpoint({ name: "n1", jump: hops, hostKeys })));
    expect(error.problems[0]?.code).to.equal("HOST_KEY_CHANGED");
    expect(error.message).to.include("n1");
  });

  it("are named when they may not connect onwards", async () => {
    const closed = await startSshd({ config: ["AllowTcpForwarding no"] });
    try {
      const error = await rejectionOf(
        transport.connect(target.endpoint({ jump: [closed.endpoint({ name: "closed" })] })),
      );
      expect(error.problems[0]?.code).to.equal("FORWARD_FAILED");
      expect(error.message).to.include(`closed does not connect to 127.0.0.1 port ${target.port}`);
    } finally {
      await closed.stop();
    }
  });

  it("end the connections of all nodes behind them when they are lost", async () => {
    const lost = await startSshd();
    try {
      const jump = [lost.endpoint({ name: "lost" })];
      const nodes = await Promise.all([1, 2].map(() => transport.connect(target.endpoint({ jump }))));
      const channels = await Promise.all(nodes.map((node) => node.exec("sleep 5")));
      await lost.dropSessions();
      expect(await Promise.all(channels.map(({ exit }) => exit))).to.deep.equal([{}, {}]);
      await Promise.all(nodes.map(({ closed }) => closed));
    } finally {
      await lost.stop();
    }
  });

  it("let a host key be scanned through them", async () => {
    const key = await transport.scanHostKey(target.endpoint({ jump: hops, hostKeys: [] }));
    expect(`${key.type} ${key.key}`).to.equal(target.hostKey);
  });
});
