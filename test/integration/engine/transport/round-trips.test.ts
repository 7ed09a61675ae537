import { expect } from "chai";
import { appendFile, writeFile } from "node:fs/promises";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import ssh2 from "ssh2";
import { createTransport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { startDelayLine } from "#support/delay-line.ts";
import { startDropbear } from "#support/dropbear.ts";
import { makeKey, type SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { makeTempDir } from "#support/temp-dir.ts";

/**
 * Round trips without the TCP handshake: bursts of the client's bytes, each after an answer, until the login is done and until a command runs.
 */
async function countTurns(port: number, endpoint: (port: number) => Endpoint) {
  const line = await startDelayLine({ target: { port }, latency: 20 });
  const transport = createTransport({ home: "/nonexistent", knownHostsFiles: [] });
  try {
    const host = await transport.connect(endpoint(line.port));
    const login = line.turns;
    const channel = await host.exec("cat", { input: "hello" });
    const start = line.turns - login;
    channel.end();
    expect(await text(channel.stdout)).to.equal("hello");
    // The client does not wait for the server's farewell.
    line.setLatency(5000);
    const before = line.arrivals;
    await host.close();
    expect(line.arrivals).to.equal(before);
    return { login, start };
  } finally {
    await transport.close();
    await line.close();
  }
}

/** The lowest counts of several tries. On a busy machine one flight may be split in two; two flights never merge. */
async function turnsOf(wanted: { login: number; start: number }, port: number, endpoint: (port: number) => Endpoint) {
  const counts: Awaited<ReturnType<typeof countTurns>>[] = [];
  const least = (name: "login" | "start"): number => Math.min(...counts.map((count) => count[name]));
  while (counts.length < 30 && (least("login") > wanted.login || least("start") > wanted.start))
    counts.push(await countTurns(port, endpoint));
  return { login: least("login"), start: least("start") };
}

describe("the round trips of a session", () => {
  for (const [name, startOne] of [
    ["OpenSSH", () => startSshd()],
    ["dropbear", () => startDropbear()],
  ] as const)
    describe(`with ${name}`, () => {
      let server: SshServer;
      before(async () => {
        server = await startOne();
      });
      after(() => server?.stop());

      it("are three for the login and one for the first command", async () => {
        const wanted = { login: 3, start: 1 };
        expect(await turnsOf(wanted, server.port, (port) => server.endpoint({ port }))).to.deep.equal(wanted);
      });

      it("are four for a login whose signature needs the server's algorithms", async () => {
        const identityFile = join(server.folder, "rsa");
        const key = await makeKey(identityFile, "rsa");
        await appendFile(join(server.home("root"), ".ssh", "authorized_keys"), `${key}\n`);
        const wanted = { login: 4, start: 1 };
        const turns = await turnsOf(wanted, server.port, (port) => server.endpoint({ port, identityFile }));
        expect(turns).to.deep.equal(wanted);
      });
    });

  it("are more with an unknown server, which gets no request in advance", async () => {
    // ECDSA, for ssh2 cannot read one in 256 of the Ed25519 keys that it makes (mscdex/ssh2#1513).
    const makePair = () => ssh2.utils.generateKeyPairSync("ecdsa", { bits: 256 });
    const [host, login] = [makePair(), makePair()];
    const folder = await makeTempDir("unknown-server");
    const identityFile = join(folder.path, "key");
    await writeFile(identityFile, login.private, { mode: 0o600 });
    const server = startEcho(host.private);
    try {
      await once(server, "listening");
      const { port } = server.address() as AddressInfo;
      const hostKeys = [host.public.split(" ").slice(0, 2).join(" ")];
      const node = { name: "n1", transport: "ssh", address: "127.0.0.1", user: "root", jump: [] } as const;
      const endpoint = (through: number): Endpoint => ({ ...node, port: through, hostKeys, identityFile });
      // This server's login takes four or five.
      const turns = await turnsOf({ login: 5, start: 2 }, port, endpoint);
      expect(turns.login).to.be.at.least(4);
      expect(turns.start).to.equal(2);
    } finally {
      server.close();
      await folder.remove();
    }
  });
});

/** A server named ssh2js that accepts every login and echoes its input. */
function startEcho(hostKey: string): ssh2.Server {
  const server = new ssh2.Server({ hostKeys: [hostKey] }, (client) => {
    client.on("error", () => undefined);
    client.on("authentication", (attempt) => attempt.accept());
    client.on("session", (accept) =>
      accept().on("exec", (acceptExec) => {
        const channel = acceptExec();
        channel.pipe(channel);
      }),
    );
  });
  return server.listen(0, "127.0.0.1");
}
