import { execFileSync } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

/** Two machines that accept root's password alone; the private half of the deploy key is not on this machine. */
describe("kcore roster trust --deploy-key", () => {
  let servers: readonly [SshServer, SshServer];
  let project: TestProject;
  const secret = "a first contact";
  const fleet = (): string => join(project.path, "fleet.pub");
  const password = (): string => join(project.project, "password");
  const keysOf = async (server: SshServer): Promise<string> =>
    readFile(join(server.home("root"), ".ssh/authorized_keys"), "utf8").catch(() => "");
  const trust = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("roster", "trust", ...words, "--deploy-key", fleet());
  const setPassword = async (server: SshServer, text: string): Promise<void> => {
    const hash = execFileSync("openssl", ["passwd", "-6", text], { encoding: "utf8" }).trim();
    const shadow = await readFile(join(server.folder, "shadow"), "utf8");
    await writeFile(join(server.folder, "shadow"), shadow.replace(/^root:[^:]*:/m, `root:${hash}:`));
  };

  beforeEach(async () => {
    const start = async (): Promise<SshServer> => {
      const server = await startSshd({ config: ["PasswordAuthentication yes", "PermitRootLogin yes"] });
      await setPassword(server, secret);
      await rm(join(server.home("root"), ".ssh"), { recursive: true });
      return server;
    };
    servers = [await start(), await start()];
    const nodes = servers.map(({ port }, index) => `  n${index + 1}: { address: 127.0.0.1, port: ${port} }\n`).join("");
    project = new TestProject({
      "roster/nodes.yaml": `defaults: { identityFile: ${servers[0].identityFile} }\nnodes:\n${nodes}`,
      password: `${secret}\n`,
    });
    execFileSync("chmod", ["600", password()]);
    const words = ["-q", "-t", "ed25519", "-N", "", "-C", "fleet of the north", "-f", join(project.path, "fleet")];
    execFileSync("ssh-keygen", words);
  });
  afterEach(async () => {
    for (const server of servers) await server.stop();
    await project.remove();
  });

  it("pins the host key first, installs the key with one password login, and finds it in place the next time", async () => {
    const [server] = servers;
    const fingerprint = parseHostKey(server.hostKey)?.fingerprint ?? "";
    const first = await trust("n1", "--host-key", fingerprint, "--password-file", password());
    expect(first.code, first.stderr).to.equal(0);
    expect(first.stdout).to.match(
      /SHA256:\S+\n {2}pinned in roster\/nodes\.yaml\n {2}n1 lets root in with the key from now on\n/,
    );
    expect(await keysOf(server)).to.equal(await readFile(fleet(), "utf8"));
    const second = await trust("n1", "--password-file", password());
    expect(second.stdout).to.contain("pinned already").and.to.contain("the key is on n1 already");
    expect(await keysOf(server)).to.equal(await readFile(fleet(), "utf8"));
    expect(`${first.stdout}${first.stderr}${await server.log()}`).not.to.contain(secret);
    expect(await readFile(join(project.project, "roster/nodes.yaml"), "utf8")).not.to.contain(secret);
  });

  it("sends no password to a machine whose host key was not accepted", async () => {
    const refused = await trust("n1", "--host-key", "SHA256:another", "--password-file", password());
    expect([refused.code, await keysOf(servers[0])]).to.deep.equal([1, ""]);
    expect(await servers[0].log()).not.to.match(/(Accepted|Failed) password/);
  });

  it("asks for one hidden password for all nodes, and again for a node with another password", async () => {
    await setPassword(servers[1], "quite another");
    await project.atTerminal(async (shell) => {
      await shell.enter(
        `clear; '${kcoreProgram}' roster trust 'n[12]' --yes --deploy-key ${fleet()}; echo "ended: $?"`,
      );
      await shell.shows(/^Password of root of n1 and of root of n2:$/m);
      await shell.enter(secret);
      await shell.shows(/^Password of root of n2, which has another:$/m);
      await shell.enter("quite another");
      const screen = await shell.shows(/ended: 0/);
      expect(screen).to.contain("n1 lets root in").and.to.contain("n2 lets root in");
      expect(screen).not.to.contain(secret).and.not.to.contain("quite another");
    });
    for (const server of servers) expect(await keysOf(server)).to.equal(await readFile(fleet(), "utf8"));
  });

  it("reports a node that refuses and continues with the others; a key that is already accepted needs no password", async () => {
    await setPassword(servers[0], "quite another");
    const both = await trust("n[12]", "--yes", "--password-file", password());
    expect(both.code).to.equal(1);
    expect(both.stderr).to.contain("AUTH_FAILED").and.to.contain("n1");
    expect(both.stdout).to.contain("n2 lets root in");
    await writeFile(
      join(servers[1].home("root"), ".ssh/authorized_keys"),
      execFileSync("ssh-keygen", ["-y", "-f", servers[0].identityFile], { encoding: "utf8" }),
    );
    const again = await trust("n2");
    expect([again.code, again.stdout.includes("n2 lets root in")], again.stderr).to.deep.equal([0, true]);
  });

  it("refuses a file that holds no public key before connecting, and fails when nobody can be asked for the password", async () => {
    const wrong = async (text: string): Promise<CommandEnd> => {
      await writeFile(fleet(), text);
      return trust("n1", "--yes");
    };
    const line = await readFile(fleet(), "utf8");
    const before = (await servers[0].log()).length;
    const secretHalf = await wrong(await readFile(join(project.path, "fleet"), "utf8"));
    expect(secretHalf.stderr).to.contain("holds a private key, which stays where it is");
    expect((await wrong(`${line}${line}`)).stderr).to.contain("does not hold one public key");
    expect((await wrong(`command="x" ${line}`)).stderr).to.contain("does not hold one public key");
    expect((await servers[0].log()).length, "nothing was asked of the machine").to.equal(before);
    await writeFile(fleet(), line);
    expect((await trust("n1", "--yes")).stderr)
      .to.contain("QUESTION_UNANSWERED")
      .and.to.contain("--password-file FILE");
  });

  describe("kcore node disks --password-file, for a machine outside the roster", () => {
    const disks = (...words: readonly string[]): Promise<CommandEnd> => {
      const fingerprint = parseHostKey(servers[0].hostKey)?.fingerprint ?? "";
      const node = ["--node", `127.0.0.1:${servers[0].port}`, "--host-key", fingerprint];
      return project.kcore("node", "disks", ...node, ...words);
    };
    beforeEach(() => {
      const defaults = `defaults: { identityFile: ${servers[0].identityFile} }\nnodes: {}\n`;
      project.write({ "project/roster/nodes.yaml": defaults });
    });

    it("installs the key with one login; the next command needs no password", async () => {
      execFileSync("chmod", ["644", password()]);
      const open = await disks("--password-file", password());
      expect([open.code, await keysOf(servers[0])]).to.deep.equal([2, ""]);
      expect(open.stderr).to.contain("FILE_UNTRUSTED").and.contain(`others may read the password file ${password()}`);
      execFileSync("chmod", ["600", password()]);
      const first = await disks("-o", "json", "--password-file", password());
      expect(first.code, first.stderr).to.equal(0);
      expect(JSON.parse(first.stdout)).to.be.an("array");
      expect(first.stderr).to.contain("the password was used once").and.not.to.contain(secret);
      const second = await disks("--ask-password");
      expect(second.code, second.stderr).to.equal(0);
      expect(second.stderr).not.to.contain("password");
      expect((await keysOf(servers[0])).trimEnd().split("\n")).to.have.length(1);
      expect((await servers[0].log()).match(/Accepted password/g)).to.have.length(1);
    });

    it("names --password-file where no terminal can ask, and --ask-password where the key was refused", async () => {
      const asked = await disks("--ask-password");
      expect(asked.code).to.equal(2);
      expect(asked.stderr).to.contain("QUESTION_UNANSWERED").and.to.contain("--password-file FILE");
      const refused = await disks();
      expect(refused.code).to.equal(1);
      expect(refused.stderr).to.contain("AUTH_FAILED").and.to.contain("--ask-password installs your public key");
      expect(await keysOf(servers[0])).to.equal("");
    });
  });
});
