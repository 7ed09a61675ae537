import { createHash, randomBytes } from "node:crypto";
import { createServer, type AddressInfo, type Server } from "node:net";
import { buffer, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { createTransport } from "#engine/transport/connect.ts";
import type { Host } from "#engine/transport/host.ts";
import { startDropbear } from "#support/dropbear.ts";
import { freePort } from "#support/ports.ts";
import { codeOf } from "#support/rejection.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

/** An implementation of Host under test. */
interface TransportUnderTest {
  connect(): Promise<Host>;
  /** Drops all connections; absent for a transport without one. */
  lose?(): Promise<unknown>;
  stop(): Promise<void>;
}

/** Tests that hold for every transport. */
function describeTransport(name: string, start: () => Promise<TransportUnderTest>): void {
  describe(`transport: ${name}`, () => {
    let transport: TransportUnderTest;
    let host: Host;
    before(async () => {
      transport = await start();
    });
    after(() => transport?.stop());
    beforeEach(async () => {
      host = await transport.connect();
    });
    afterEach(() => host?.close());

    it("returns a command's output and exit code", async () => {
      const channel = await host.exec("echo hello; exit 3");
      expect(await text(channel.stdout)).to.equal("hello\n");
      expect(await channel.exit).to.deep.equal({ code: 3 });
    });

    it("resolves the exit of a command without output when nobody reads", async () => {
      expect(await (await host.exec("exit 0")).exit).to.deep.equal({ code: 0 });
    });

    it("returns the signal that ended a command", async () => {
      const channel = await host.exec("kill -9 $$");
      expect(await text(channel.stdout)).to.equal("");
      const exit = await channel.exit;
      // dropbear reports a signal of the login shell's child by the shell's code.
      expect([{ signal: "SIGKILL" }, { code: 137 }]).to.deep.include(exit);
    });

    it("sends the first input with the command, and later writes in order", async () => {
      const channel = await host.exec("cat", { input: "one " });
      await channel.write("two ");
      await channel.write(Buffer.from("three"));
      channel.end();
      expect(await text(channel.stdout)).to.equal("one two three");
    });

    it("sends a first input larger than any window", async () => {
      const input = randomBytes(5 * 1024 * 1024);
      const channel = await host.exec("sha256sum", { input });
      channel.end();
      expect(await text(channel.stdout)).to.include(sha256(input));
    });

    it("transfers 20 MB in both directions unchanged", async () => {
      const input = randomBytes(20 * 1024 * 1024);
      const channel = await host.exec("cat");
      const received = buffer(channel.stdout);
      for (let at = 0; at < input.length; at += 1024 * 1024) await channel.write(input.subarray(at, at + 1024 * 1024));
      channel.end();
      expect((await received).equals(input)).to.equal(true);
      expect(await channel.exit).to.deep.equal({ code: 0 });
    });

    it("keeps the last 64 KiB of stderr, even while stdout is not read", async () => {
      const channel = await host.exec("head -c 300000 /dev/zero | tr '\\0' x >&2; echo END >&2; echo out");
      expect(await text(channel.stdout)).to.equal("out\n");
      await channel.exit;
      expect(channel.stderrTail()).to.have.lengthOf(64 * 1024);
      expect(channel.stderrTail().endsWith("xEND\n")).to.equal(true);
    });

    it("gives a command no terminal", async () => {
      const channel = await host.exec("if [ -t 0 ] || [ -t 1 ] || [ -t 2 ]; then echo terminal; else echo none; fi");
      expect(await text(channel.stdout)).to.equal("none\n");
    });

    it("blocks a command while its output is not read", async () => {
      const size = 30_000_000;
      const channel = await host.exec(`head -c ${size} /dev/zero; echo written >&2`);
      await sleep(300);
      expect(channel.stderrTail()).to.equal("");
      expect((await buffer(channel.stdout)).length).to.equal(size);
      await channel.exit;
      expect(channel.stderrTail()).to.equal("written\n");
    });

    it("blocks a writer while the command does not read", async () => {
      const channel = await host.exec("read -r go; cat >/dev/null & wait; cat >/dev/null; echo read");
      let written = false;
      const writing = (async () => {
        for (let sent = 0; sent < 20; sent++) await channel.write(Buffer.alloc(1024 * 1024));
        written = true;
      })();
      await sleep(300);
      expect(written).to.equal(false);
      await channel.write("\n");
      await writing;
      channel.end();
      expect(await text(channel.stdout)).to.equal("read\n");
    });

    it("rejects a write to an ended command", async () => {
      const channel = await host.exec("exit 0");
      await channel.exit;
      expect(await codeOf(channel.write("late"))).to.equal("CHANNEL_CLOSED");
    });

    it("rejects a pending write when its command ends", async () => {
      const channel = await host.exec("sleep 0.2");
      const writing = (async () => {
        for (let sent = 0; sent < 30; sent++) await channel.write(Buffer.alloc(1024 * 1024));
      })();
      expect(await codeOf(writing)).to.equal("CHANNEL_CLOSED");
      await channel.exit;
    });

    it("ends a closed channel at once with an unknown outcome, and keeps the others", async () => {
      const other = await host.exec("cat");
      const channel = await host.exec("echo begun; sleep 60");
      const stdout = channel.stdout[Symbol.asyncIterator]();
      expect(Buffer.from((await stdout.next()).value ?? "").toString()).to.equal("begun\n");
      const next = stdout.next();
      channel.close();
      channel.close();
      expect(await channel.exit).to.deep.equal({});
      expect((await next).done).to.equal(true);
      await other.write("still here");
      other.end();
      expect(await text(other.stdout)).to.equal("still here");
    });

    it("runs several commands at once", async () => {
      // The channels end together: dropbear 2022.83 closes a session that waits for its command when another session ends.
      const start = (n: number) => host.exec(`read -r x; echo ${n} $x; cat`, { input: `i${n}\n` });
      const channels = await Promise.all([1, 2, 3, 4].map(start));
      for (const channel of channels) channel.end();
      expect(await Promise.all(channels.map(({ stdout }) => text(stdout)))).to.deep.equal([
        "1 i1\n",
        "2 i2\n",
        "3 i3\n",
        "4 i4\n",
      ]);
    });

    it("closes a command's channel when its signal fires", async () => {
      const controller = new AbortController();
      const channel = await host.exec("sleep 2", { signal: controller.signal });
      controller.abort();
      expect(await channel.exit).to.deep.equal({});
      expect(await codeOf(host.exec("true", { signal: controller.signal }))).to.equal("INTERRUPTED");
    });

    it("forwards a connection made from the host", async () => {
      const { server, port } = await startEcho();
      try {
        const stream = await host.forward("127.0.0.1", port);
        stream.write("ping");
        const answer = await new Promise<Buffer>((resolve) => stream.once("data", resolve));
        expect(answer.toString()).to.equal("ping");
        stream.destroy();
      } finally {
        server.close();
      }
    });

    it("reports a port that the host cannot reach", async () => {
      const code = await codeOf(host.forward("127.0.0.1", await freePort()));
      expect(["FORWARD_FAILED", "HOST_UNREACHABLE"]).to.include(code);
    });

    it("keeps the bastion's environment from commands", async () => {
      process.env["KCORE_CANARY"] = "secret";
      try {
        expect(await text((await host.exec("env")).stdout)).not.to.include("KCORE_CANARY");
      } finally {
        delete process.env["KCORE_CANARY"];
      }
    });

    it("ends all channels when it is closed, once or twice", async () => {
      const channel = await host.exec("sleep 2");
      await host.close();
      await host.close();
      expect(await channel.exit).to.deep.equal({});
      expect(await host.closed).to.equal("closed by kcore");
      expect(await codeOf(host.exec("true"))).to.be.oneOf(["HOST_UNREACHABLE", "CHANNEL_CLOSED"]);
    });

    it("reports an unknown outcome when the connection is lost (F-1)", async function () {
      if (!transport.lose) this.skip();
      const channel = await host.exec("echo begun; read -r x; echo never");
      const stdout = channel.stdout[Symbol.asyncIterator]();
      expect(Buffer.from((await stdout.next()).value ?? "").toString()).to.equal("begun\n");
      const next = stdout.next();
      await transport.lose();
      expect(await channel.exit).to.deep.equal({});
      expect((await next).done).to.equal(true);
      expect(await host.closed)
        .to.be.a("string")
        .and.not.equal("closed by kcore");
      expect(await codeOf(channel.write("x"))).to.equal("CHANNEL_CLOSED");
      expect(await codeOf(host.exec("true"))).to.equal("HOST_UNREACHABLE");
    });
  });
}

function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

async function startEcho(): Promise<{ server: Server; port: number }> {
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.pipe(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { server, port: (server.address() as AddressInfo).port };
}

async function openTransport(
  starting: Promise<SshServer>,
  kind: "ssh" | "openssh" = "ssh",
): Promise<TransportUnderTest> {
  const server = await starting;
  const transport = createTransport({ home: server.folder });
  return {
    connect: () => transport.connect({ ...server.endpoint(), transport: kind }),
    lose: () => server.dropSessions(),
    stop: async () => {
      await transport.close();
      await server.stop();
    },
  };
}

describeTransport("ssh2 on OpenSSH", () => openTransport(startSshd()));
describeTransport("ssh2 on dropbear", () => openTransport(startDropbear()));
describeTransport("OpenSSH's client on OpenSSH", () => openTransport(startSshd(), "openssh"));
describeTransport("OpenSSH's client on dropbear", () => openTransport(startDropbear(), "openssh"));
describeTransport("local", () => {
  const transport = createTransport({ home: "/nonexistent" });
  const here = { name: "here", transport: "local", address: "localhost", port: 22, user: "root" } as const;
  return Promise.resolve({
    connect: () => transport.connect({ ...here, hostKeys: [], jump: [] }),
    stop: () => transport.close(),
  });
});
