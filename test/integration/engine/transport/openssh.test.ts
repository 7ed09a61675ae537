import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect } from "chai";
import { createTransport, type Transport } from "#engine/transport/connect.ts";
import type { Endpoint, Host } from "#engine/transport/host.ts";
import { eventually } from "#support/cluster.ts";
import { freePort } from "#support/ports.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";
import { makeKey, type SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

/** The processes of this machine whose command line names the folder. */
function processesIn(words: string): readonly string[] {
  return readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return line.includes(words) ? [line] : [];
    } catch {
      return [];
    }
  });
}
const connectionFolders = () =>
  readdirSync(tmpdir()).filter((name) => /^kcore-\w{6}$/.test(name) && existsSync(join(tmpdir(), name, "known_hosts")));

const output = async (host: Host, command: string) => text((await host.exec(command)).stdout);

describe("OpenSSH's own client on a real sshd", () => {
  let server: SshServer;
  let outer: SshServer;
  let transport: Transport;
  let temporary: TempDir;
  const usual = process.env["TMPDIR"];
  before(async () => {
    [server, outer] = await Promise.all([
      startSshd({ config: ["MaxSessions 2"], users: [{ name: "loud" }] }),
      startSshd(),
    ]);
    // A folder of this test alone: other tests connect at the same time.
    temporary = await makeTempDir("ssh");
    process.env["TMPDIR"] = temporary.path;
    transport = createTransport({ home: server.folder, knownHostsFiles: [] });
  });
  after(async () => {
    await transport?.close();
    await Promise.all([server, outer].map((one) => one?.stop()));
    if (usual === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = usual;
    await temporary.remove();
  });
  const endpoint = (fields: Partial<Endpoint> = {}) => server.endpoint({ transport: "openssh", ...fields });

  it("shows the presented key, and refuses one that is not pinned (S-1)", async () => {
    const host = await transport.connect(endpoint());
    expect([host.fingerprint.slice(0, 7), host.hostKey]).to.deep.equal(["SHA256:", server.hostKey]);
    await host.close();
    const other = await makeKey(join(server.folder, "another"));
    expect(await codeOf(transport.connect(endpoint({ hostKeys: [other] })))).to.equal("HOST_KEY_CHANGED");
    const unknown = await rejectionOf(transport.connect(endpoint({ name: "n1", hostKeys: [] })));
    expect(unknown.problems[0]).to.include({
      code: "HOST_KEY_UNKNOWN",
      message: `the host key of n1 (127.0.0.1 port ${server.port}) is not known: it presents ${host.fingerprint} (ssh-ed25519)`,
    });
  });

  it("reports why a login or a connection failed", async () => {
    const stranger = join(server.folder, "stranger");
    await makeKey(stranger);
    const refused = await rejectionOf(transport.connect(endpoint({ identityFile: stranger })));
    expect(refused.problems[0]).to.include({ code: "AUTH_FAILED" });
    expect(refused.problems[0]?.detail).to.include("Permission denied (publickey)");
    const noServer = await rejectionOf(transport.connect(endpoint({ port: await freePort() })));
    expect([noServer.problems[0]?.code, noServer.exitCode]).to.deep.equal(["HOST_UNREACHABLE", 3]);
    expect(noServer.problems[0]?.message).to.include("Connection refused");
  });

  it("goes through jump hosts, each verified by its own pins (S-2)", async () => {
    const host = await transport.connect(endpoint({ jump: [outer.endpoint({ name: "outer" })] }));
    expect(await output(host, "echo there")).to.equal("there\n");
    await host.close();
    expect(await outer.log()).to.include("Accepted publickey");
    const hostKeys = [await makeKey(join(outer.folder, "another"))];
    const jump = [outer.endpoint({ name: "outer", hostKeys })];
    expect(await codeOf(transport.connect(endpoint({ jump })))).to.be.oneOf(["HOST_KEY_CHANGED", "HOST_UNREACHABLE"]);
  });

  it("uses the user's ssh_config for addresses and keys, but not for trust", async () => {
    const home = join(server.folder, "user");
    await mkdir(join(home, ".ssh"), { recursive: true });
    const lines = [
      "Host alias-of-n1",
      "  HostName 127.0.0.1",
      `  IdentityFile ${server.identityFile}`,
      "  StrictHostKeyChecking no",
      "  RemoteCommand echo never",
    ];
    await writeFile(join(home, ".ssh", "config"), `${lines.join("\n")}\n`, { mode: 0o600 });
    const own = createTransport({ home, knownHostsFiles: [] });
    const { identityFile: _, ...plain } = endpoint({ address: "alias-of-n1" });
    const host = await own.connect(plain);
    expect(await output(host, "echo there")).to.equal("there\n");
    await host.close();
    expect(await codeOf(own.connect({ ...plain, hostKeys: [] }))).to.equal("HOST_KEY_UNKNOWN");
  });

  it("drops output of start-up files, and distinguishes a command's code 255 from ssh's own", async () => {
    await writeFile(join(server.home("loud"), ".profile"), "echo welcome\n");
    const host = await transport.connect(endpoint({ user: "loud" }));
    const channel = await host.exec("printf 'a\\nb'; printf 'no line break' >&2; exit 255");
    expect(await text(channel.stdout)).to.equal("a\nb");
    expect([await channel.exit, channel.stderrTail()]).to.deep.equal([{ code: 255 }, "no line break"]);
    await host.close();
  });

  it("reports a refused channel, and opens no further connection", async () => {
    const host = await transport.connect(endpoint());
    const logins = async () => (await server.log()).split("Accepted publickey").length;
    const before = await logins();
    const channels = [await host.exec("cat"), await host.exec("cat")];
    expect(await codeOf(host.exec("true"))).to.equal("CHANNEL_REFUSED");
    expect(await logins()).to.equal(before);
    for (const channel of channels) channel.end();
    await Promise.all(channels.map(({ exit }) => exit));
    expect(await output(host, "echo again")).to.equal("again\n");
    await host.close();
  });

  it("leaves no process and no file after close or abort", async () => {
    const host = await transport.connect(endpoint());
    const channel = await host.exec("cat");
    expect(connectionFolders()).to.have.length(1);
    const [folder = "none"] = connectionFolders();
    expect(processesIn(folder).length).to.be.at.least(3);
    await host.close();
    await channel.exit;
    await eventually(() => processesIn(folder).length === 0);
    expect(connectionFolders()).to.deep.equal([]);
    const stop = new AbortController();
    const connecting = transport.connect(endpoint(), { signal: stop.signal });
    await eventually(() => connectionFolders().length === 1);
    const [abortedFolder = "none"] = connectionFolders();
    stop.abort();
    expect(await codeOf(connecting)).to.equal("INTERRUPTED");
    await eventually(() => processesIn(abortedFolder).length === 0 && connectionFolders().length === 0);
  });

  it("ends with the process that opened it, even if that is killed", async () => {
    const { jump: _, passphrase: __, ...plain } = endpoint();
    const script = `import { createTransport } from "#engine/transport/connect.ts";
      const host = await createTransport({ home: "/nonexistent" }).connect(${JSON.stringify({ ...plain, jump: [] })});
      await host.exec("sleep 30");
      console.log("open");
      setInterval(() => undefined, 1000);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(child.stdout, "data");
    const [folder = "none"] = connectionFolders();
    expect(processesIn(folder).length).to.be.at.least(3);
    child.kill("SIGKILL");
    await eventually(() => processesIn(folder).length === 0 && connectionFolders().length === 0);
  });
});
