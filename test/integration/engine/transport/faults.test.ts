import { expect } from "chai";
import { writeFile } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { setTimeout as sleep } from "node:timers/promises";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import { KcoreError } from "#errors/problem.ts";
import { HostUnreachable } from "#engine/transport/host-problems.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { eventually } from "#support/cluster.ts";
import { startDelayLine, type DelayLine } from "#support/delay-line.ts";
import { hangLimit } from "#support/limit.ts";
import { freePort } from "#support/ports.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

describe("faults of connections to a real sshd", () => {
  let server: SshServer;
  let transport: Transport;
  let line: DelayLine;
  before(async () => {
    server = await startSshd();
    transport = createTransport({ home: server.folder, knownHostsFiles: [] });
  });
  after(() => server?.stop());
  beforeEach(async () => {
    line = await startDelayLine({ target: server });
  });
  afterEach(() => line.close());

  const unreachable = async (promise: Promise<unknown>) => {
    const error = await rejectionOf(promise);
    expect(error).to.be.instanceOf(HostUnreachable);
    expect(error.exitCode).to.equal(3);
    return error as HostUnreachable;
  };
  const through = (fields: Partial<Endpoint> = {}) => server.endpoint({ name: "n1", port: line.port, ...fields });

  it("detects a dead half-open connection by its silence (F-2)", async () => {
    const watchful = createTransport({ home: server.folder, knownHostsFiles: [], silence: 3_000 });
    const host = await watchful.connect(through());
    const channel = await host.exec("echo begun; read -r x");
    const stdout = channel.stdout[Symbol.asyncIterator]();
    expect(Buffer.from((await stdout.next()).value ?? "").toString()).to.equal("begun\n");
    line.blackhole();
    expect(await channel.exit).to.deep.equal({});
    expect((await stdout.next()).done).to.equal(true);
    expect(await host.closed).to.equal("n1 gave no sign of life for 3 s");
    await watchful.close();
    line.heal();
    await (await transport.connect(through())).close();
  });

  it("keeps a quiet connection alive", async () => {
    const patient = createTransport({ home: server.folder, knownHostsFiles: [], silence: 6_000 });
    const host = await patient.connect(through());
    let ended = false;
    void host.closed.then(() => (ended = true));
    // Each keepalive is one round trip, and four of them exceed the permitted silence.
    const before = line.turns;
    await eventually(() => ended || line.turns >= before + 4);
    expect(ended).to.equal(false);
    await host.close();
    await patient.close();
  });

  it("gives up at the deadline at any stage of the handshake (F-14)", async () => {
    const silent = await listen(() => undefined);
    try {
      for (const port of [silent.port, line.port]) {
        if (port === line.port) line.blackhole();
        const error = await unreachable(transport.connect(server.endpoint({ name: "n1", port }), { timeout: 1000 }));
        expect(error.reason).to.equal("timeout");
        expect(error.message).to.include("n1 did not finish the key exchange").and.include("1 s");
      }
    } finally {
      silent.close();
    }
  });

  it("reports a port where nothing listens", async () => {
    const error = await unreachable(transport.connect(server.endpoint({ port: await freePort() })));
    expect(error.reason).to.equal("refused");
    expect(error.problems[0]?.hint).to.include("is sshd running");
  });

  it("reports a port where another service listens", async () => {
    const web = await listen((socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\nhello\n"));
    try {
      const error = await unreachable(transport.connect(server.endpoint({ port: web.port }), { timeout: hangLimit }));
      expect(error.reason).to.be.oneOf(["handshake", "busy"]);
    } finally {
      web.close();
    }
  });

  it("can be aborted while connecting", async () => {
    line.blackhole();
    const controller = new AbortController();
    const connecting = transport.connect(through(), { signal: controller.signal });
    setTimeout(() => controller.abort(new Error("enough")), 50);
    expect(await codeOf(connecting)).to.equal("INTERRUPTED");
    expect(await codeOf(transport.connect(through(), { signal: controller.signal }))).to.equal("INTERRUPTED");
  });

  it("reports sshd as busy above MaxStartups, and connects later (F-22)", async () => {
    const crowded = await startSshd({ config: ["MaxStartups 1:100:1"] });
    try {
      // A client that does not log in takes the only place.
      const idler = connect(crowded.port, "127.0.0.1");
      await new Promise((resolve) => idler.once("data", resolve));
      const error = await unreachable(transport.connect(crowded.endpoint()));
      expect(error.reason).to.equal("busy");
      expect(error.problems[0]?.hint).to.include("MaxStartups");
      idler.destroy();
      await (await untilNotBusy(() => transport.connect(crowded.endpoint()))).close();
    } finally {
      await crowded.stop();
    }
  });

  it("reports sshd as busy above MaxSessions, and keeps its open sessions (F-22)", async () => {
    const narrow = await startSshd({ config: ["MaxSessions 1"] });
    try {
      const host = await transport.connect(narrow.endpoint());
      const first = await host.exec("cat");
      const error = await rejectionOf(host.exec("true"));
      expect(error.problems[0]?.code).to.equal("CHANNEL_REFUSED");
      expect(error.problems[0]?.hint).to.include("MaxSessions");
      await first.write("still here");
      first.end();
      expect(await text(first.stdout)).to.equal("still here");
      await first.exit;
      // sshd counts a session for a moment after its end.
      const again = await untilNotBusy(() => host.exec("echo again"));
      expect(await text(again.stdout)).to.equal("again\n");
      await host.close();
    } finally {
      await narrow.stop();
    }
  });

  it("reports a host that allows no sessions, even with a command sent in advance", async () => {
    const none = await startSshd({ config: ["MaxSessions 0"] });
    try {
      const host = await transport.connect(none.endpoint());
      // sshd then disconnects, and its refusal may be lost with the connection.
      expect(await codeOf(host.exec("cat", { input: "x" }))).to.be.oneOf(["CHANNEL_REFUSED", "HOST_UNREACHABLE"]);
      await host.close();
    } finally {
      await none.stop();
    }
  });

  it("ignores a banner and the output of start-up files (F-12)", async () => {
    const banner = join(server.folder, "banner");
    await writeFile(banner, "Authorised users only!\n".repeat(50));
    const noisy = await startSshd({
      config: [`Banner ${banner}`, "PrintMotd yes"],
      users: [{ name: "chatty", shell: "/bin/bash" }],
    });
    try {
      await writeFile(join(noisy.home("chatty"), ".bashrc"), "echo welcome; stty sane\n");
      const host = await transport.connect(noisy.endpoint({ user: "chatty" }));
      const channel = await host.exec("exec /bin/sh -c 'IFS= read -r k; eval \"$k\"'", { input: "echo hello\n" });
      expect((await text(channel.stdout)).endsWith("hello\n")).to.equal(true);
      expect(await channel.exit).to.deep.equal({ code: 0 });
      await host.close();
    } finally {
      await noisy.stop();
    }
  });

  it("survives key re-exchanges during a transfer", async () => {
    const rekeying = await startSshd({ config: ["RekeyLimit 1M"] });
    try {
      const host = await transport.connect(rekeying.endpoint());
      const channel = await host.exec("cat");
      const reading = buffer(channel.stdout);
      for (let sent = 0; sent < 20; sent++) await channel.write(Buffer.alloc(1024 * 1024));
      channel.end();
      expect((await reading).length).to.equal(20 * 1024 * 1024);
      expect(await channel.exit).to.deep.equal({ code: 0 });
      await host.close();
    } finally {
      await rekeying.stop();
    }
  });
});

function isBusy(error: unknown): boolean {
  if (error instanceof HostUnreachable) return error.reason === "busy";
  return error instanceof KcoreError && error.problems[0]?.code === "CHANNEL_REFUSED";
}

async function untilNotBusy<T>(attempt: () => Promise<T>): Promise<T> {
  for (const end = performance.now() + hangLimit; ;) {
    try {
      return await attempt();
    } catch (error) {
      if (performance.now() > end || !isBusy(error)) throw error;
      await sleep(50);
    }
  }
}

async function listen(serve: (socket: Socket) => void): Promise<{ port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    serve(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const close = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  return { port: (server.address() as AddressInfo).port, close };
}
