import { expect } from "chai";
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { appendFile, chmod, copyFile, mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import type { Endpoint } from "#engine/transport/host.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";
import { makeKey, type SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const run = promisify(execFile);

describe("login keys on a real sshd", () => {
  let server: SshServer;
  let transport: Transport;
  let agent: { socket: string; child: ChildProcess };
  before(async () => {
    server = await startSshd({ config: ["MaxAuthTries 20"], users: [{ name: "nobody2" }] });
    transport = createTransport({ home: join(server.folder, "empty"), knownHostsFiles: [] });
    agent = await startAgent(join(server.folder, "agent"));
  });
  after(async () => {
    agent?.child.kill();
    await server?.stop();
  });

  const allow = async (publicKey: string) =>
    appendFile(join(server.home("root"), ".ssh", "authorized_keys"), `${publicKey}\n`);
  const logIn = async (fields: Partial<Endpoint>, via = transport) => {
    const host = await via.connect(server.endpoint(fields));
    const printed = await text((await host.exec('echo "$USER ${SSH_AUTH_SOCK:-no agent}"')).stdout);
    await host.close();
    return printed.trim();
  };
  const newKey = async (name: string, type: string, passphrase = "", extra: string[] = []) => {
    const file = join(server.folder, name);
    await allow(await makeKey(file, type, passphrase, extra));
    return file;
  };

  for (const [type, extra] of [
    ["ed25519", []],
    ["ecdsa", ["-b", "384"]],
    ["rsa", ["-b", "3072"]],
    ["rsa", ["-b", "2048", "-m", "PEM"]],
  ] as const)
    it(`logs in with a key of type ${[type, ...extra].join(" ")} in one round trip`, async () => {
      const identityFile = await newKey(`key-${type}-${extra.length}`, type, "", [...extra]);
      const before = (await server.log()).length;
      expect(await logIn({ identityFile })).to.equal("root no agent");
      const log = (await server.log()).slice(before);
      expect(log).to.include("Accepted publickey for root");
      expect(log).not.to.include("Postponed publickey");
    });

  it("logs in as the endpoint's user", async () => {
    expect(await logIn({ user: "nobody2" })).to.equal("nobody2 no agent");
  });

  it("asks for an encrypted key's passphrase once, and decrypts the key once", async () => {
    const identityFile = await newKey("encrypted", "ed25519", "correct horse");
    const once = createTransport({ home: server.folder, knownHostsFiles: [] });
    let asked = 0;
    const passphrase = () => Promise.resolve((asked++, "correct horse"));
    await Promise.all([1, 2, 3].map(() => logIn({ identityFile, passphrase }, once)));
    expect(asked).to.equal(1);
  });

  it("reports a missing and a wrong passphrase", async () => {
    const identityFile = await newKey("encrypted2", "ed25519", "right");
    expect(await codeOf(transport.connect(server.endpoint({ identityFile })))).to.equal("KEY_PASSPHRASE");
    const passphrase = () => Promise.resolve("wrong");
    const error = await rejectionOf(transport.connect(server.endpoint({ identityFile, passphrase })));
    expect(error.problems[0]).to.deep.equal({
      code: "KEY_PASSPHRASE",
      message: `the passphrase for ${identityFile} is wrong`,
    });
  });

  it("names what is wrong with a key file: absent, readable by others, PKCS#8, no key, unsupported cipher", async () => {
    const at = (name: string) => join(server.folder, name);
    const open = await newKey("open", "ed25519");
    await chmod(open, 0o644);
    const pkcs8 = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" });
    await writeFile(at("pkcs8"), pkcs8, { mode: 0o600 });
    await writeFile(at("text"), "hello\n", { mode: 0o600 });
    await newKey("chacha", "ed25519", "secret", ["-Z", "chacha20-poly1305@openssh.com"]);
    const codes = ["absent", "open", "pkcs8", "text", "chacha"].map((name) =>
      codeOf(
        transport.connect(server.endpoint({ identityFile: at(name), passphrase: () => Promise.resolve("secret") })),
      ),
    );
    expect(await Promise.all(codes)).to.deep.equal([
      "KEY_UNREADABLE",
      "KEY_UNREADABLE",
      "KEY_UNSUPPORTED",
      "KEY_UNSUPPORTED",
      "KEY_UNSUPPORTED",
    ]);
  });

  it("names the refused keys and the methods that the host accepts", async () => {
    const identityFile = join(server.folder, "stranger");
    await makeKey(identityFile);
    const error = await rejectionOf(transport.connect(server.endpoint({ name: "n1", identityFile })));
    expect(error.problems[0]?.code).to.equal("AUTH_FAILED");
    expect(error.problems[0]?.message).to.equal("n1 does not let root log in with this key");
    expect(error.problems[0]?.detail).to.include(identityFile).and.include("it accepts: publickey");
  });

  it("finds the accepted key of an agent, and does not forward the agent (S-9)", async () => {
    for (const name of ["a1", "a2"]) {
      await makeKey(join(server.folder, name));
      await addToAgent(agent.socket, join(server.folder, name));
    }
    await addToAgent(agent.socket, await newKey("a3", "rsa", "", ["-b", "2048"]));
    const home = join(server.folder, "agent-home");
    const withAgent = createTransport({ home, agentSocket: agent.socket, knownHostsFiles: [] });
    const { identityFile: _, ...endpoint } = server.endpoint();
    const host = await withAgent.connect(endpoint);
    const channel = await host.exec('test -z "$SSH_AUTH_SOCK"');
    expect(await channel.exit).to.deep.equal({ code: 0 });
    await host.close();
    // With several keys, the client asks before signing; other tests expect this line to be absent.
    expect(await server.log()).to.include("Postponed publickey");
  });

  it("lets the agent sign for an encrypted key file instead of asking for the passphrase", async () => {
    const identityFile = await newKey("in-agent", "ed25519", "secret");
    // The same key without its passphrase, for the agent.
    await copyFile(identityFile, `${identityFile}.plain`);
    await run("ssh-keygen", ["-q", "-p", "-P", "secret", "-N", "", "-f", `${identityFile}.plain`]);
    await addToAgent(agent.socket, `${identityFile}.plain`);
    const withAgent = createTransport({ home: server.folder, agentSocket: agent.socket, knownHostsFiles: [] });
    const passphrase = () => Promise.reject(new Error("asked"));
    expect(await logIn({ identityFile, passphrase }, withAgent)).to.equal("root no agent");
  });

  it("uses the default files of ~/.ssh, and reports when there is no key", async () => {
    const home = join(server.folder, "usual-home");
    await mkdir(join(home, ".ssh"), { recursive: true });
    const usual = createTransport({ home, knownHostsFiles: [] });
    const { identityFile, ...endpoint } = server.endpoint();
    expect(await codeOf(usual.connect(endpoint))).to.equal("AUTH_FAILED");
    await copyFile(identityFile ?? "", join(home, ".ssh", "id_ed25519"));
    await (await usual.connect(endpoint)).close();
  });

  it("reports an agent that does not answer", async () => {
    const lost = createTransport({ home: "/nonexistent", agentSocket: "/nonexistent/agent", knownHostsFiles: [] });
    const { identityFile: _, ...endpoint } = server.endpoint();
    expect(await codeOf(lost.connect(endpoint))).to.equal("AGENT_UNREACHABLE");
  });
});

describe("an agent with more keys than the server tries", () => {
  let server: SshServer;
  let agent: { socket: string; child: ChildProcess };
  let transport: Transport;
  let right: string;
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "kcore-banner-"));
    await writeFile(join(folder, "banner"), "Authorised users only.\n");
    server = await startSshd({ config: ["MaxAuthTries 3", `Banner ${folder}/banner`] });
    agent = await startAgent(join(server.folder, "agent"));
    for (let key = 1; key <= 5; key++) {
      right = join(server.folder, `k${key}`);
      const publicKey = await makeKey(right);
      if (key === 5) await appendFile(join(server.home("root"), ".ssh", "authorized_keys"), `${publicKey}\n`);
      await addToAgent(agent.socket, right);
    }
    transport = createTransport({ home: server.folder, agentSocket: agent.socket, knownHostsFiles: [] });
  });
  after(async () => {
    agent?.child.kill();
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is reported with the server's messages, the keys tried, and how to name the right key", async () => {
    const { identityFile: _, ...endpoint } = server.endpoint({ name: "n1" });
    const [problem] = (await rejectionOf(transport.connect(endpoint))).problems;
    expect(problem?.code).to.equal("AUTH_FAILED");
    expect(problem?.message).to.match(/^n1 ended the login of root after \d of 5 keys$/);
    expect(problem?.detail).to.include("Authorised users only.").and.include("Too many authentication failures");
    expect(problem?.hint).to.include("identityFile: ~/.ssh/KEY.pub");
  });

  it("offers only the key whose public half identityFile names", async () => {
    const host = await transport.connect(server.endpoint({ identityFile: `${right}.pub` }));
    await host.close();
    const strange = join(server.folder, "strange");
    await makeKey(strange);
    const error = await rejectionOf(transport.connect(server.endpoint({ identityFile: `${strange}.pub` })));
    expect(error.problems[0]).to.deep.equal({
      code: "KEY_UNREADABLE",
      message: `${strange}.pub is a public key, and no agent holds its private half`,
      hint: `ssh-add ${strange}; “ssh-add -l” lists what the agent holds`,
    });
  });

  it("refuses a user's certificate, and suggests transport: openssh", async () => {
    const key = join(server.folder, "certified");
    await makeKey(key);
    await run("ssh-keygen", ["-q", "-s", server.identityFile, "-I", "me", "-n", "root", `${key}.pub`]);
    const error = await rejectionOf(transport.connect(server.endpoint({ identityFile: `${key}-cert.pub` })));
    expect(error.problems[0]?.code).to.equal("KEY_UNSUPPORTED");
    expect(error.problems[0]?.hint).to.include("transport: openssh");
  });
});

async function startAgent(socket: string): Promise<{ socket: string; child: ChildProcess }> {
  const child = spawn("ssh-agent", ["-D", "-a", socket], { stdio: ["ignore", "pipe", "ignore"] });
  await new Promise((resolve) => child.stdout.once("data", resolve));
  return { socket, child };
}

async function addToAgent(socket: string, file: string): Promise<void> {
  await run("ssh-add", ["-q", file], { env: { ...process.env, SSH_AUTH_SOCK: socket } });
}
