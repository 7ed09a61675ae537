import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { TestProject, type CommandEnd } from "#support/kcore.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

/** `-k` (`--insecure`) never skips the verification of a host key (S-1): real sshds, no terminal. */
describe("kcore --node HOST -k", () => {
  let server: SshServer;
  let project: TestProject;
  let fingerprint: string;
  const disks = (...words: readonly string[]): Promise<CommandEnd> =>
    project.kcore("node", "disks", "--node", `127.0.0.1:${server.port}`, ...words);
  const known = (): Promise<string> => readFile(join(project.path, "home/known_hosts"), "utf8").catch(() => "");

  beforeEach(async () => {
    server = await startSshd();
    fingerprint = parseHostKey(server.hostKey)?.fingerprint ?? "";
    project = new TestProject({
      "roster/nodes.yaml": `defaults: { identityFile: ${server.identityFile} }\nnodes: {}\n`,
    });
  });
  afterEach(async () => {
    await server.stop();
    await project.remove();
  });

  it("shows an unknown key and does not log in while nobody confirms the key (S-1)", async () => {
    const asked = await disks("-k");
    expect(asked.code).to.equal(2);
    expect(asked.stderr).to.contain("QUESTION_UNANSWERED").and.to.contain(fingerprint);
    const unknown = await disks();
    expect(unknown.code).to.equal(2);
    expect(unknown.stderr).to.contain("HOST_KEY_UNKNOWN").and.to.contain(fingerprint);
    expect(await known()).to.equal("");
    expect(await server.log()).not.to.contain("Accepted publickey");
  });

  it("pins the key that --host-key names once, and refuses another fingerprint (S-1)", async () => {
    const other = await disks("-k", "--host-key", "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    expect(other.code).to.equal(3);
    expect(other.stderr).to.contain("HOST_KEY_CHANGED");
    const pinned = await disks("-o", "json", "--host-key", fingerprint);
    expect(pinned.code, pinned.stderr).to.equal(0);
    expect(pinned.stderr).to.contain(`as root, port ${server.port}`);
    expect(JSON.parse(pinned.stdout)).to.be.an("array");
    expect(await known()).to.equal(`[127.0.0.1]:${server.port} ${server.hostKey}\n`);
    expect((await stat(join(project.path, "home/known_hosts"))).mode & 0o777).to.equal(0o600);
    expect((await disks("-k")).code, "it is known now").to.equal(0);
    expect((await disks()).code).to.equal(0);
    expect((await known()).split("\n")).to.have.length(2);
  });

  it("refuses a changed key of a known machine whatever flags are given (S-1)", async () => {
    const { hostKey: another } = await sshdWithOtherKey();
    project.write({
      "project/roster/nodes.yaml": `nodes:\n  n: { address: 127.0.0.1, port: ${server.port}, identityFile: ${server.identityFile}, hostKeys: ["${another}"] }\n`,
    });
    for (const words of [["-k"], ["-k", "--host-key", fingerprint]]) {
      const refused = await disks(...words);
      expect(refused.code).to.equal(3);
      expect(refused.stderr).to.contain("HOST_KEY_CHANGED").and.to.contain("kcore roster trust --replace n");
    }
    expect(await server.log()).not.to.contain("Accepted publickey");
  });

  async function sshdWithOtherKey(): Promise<{ hostKey: string }> {
    const other = await startSshd();
    await other.stop();
    return { hostKey: other.hostKey };
  }

  it("refuses an installation with an unconfirmed key before the roster is changed", async () => {
    const file = join(project.project, "roster/nodes.yaml");
    const before = await readFile(file, "utf8");
    const words = ["--os-disk", "/dev/sda", "--os-installed", "--run-controller", "-k"];
    const refused = await project.kcore("node", "install", "--node", `127.0.0.1:${server.port}`, ...words);
    expect(refused.code).to.equal(2);
    expect(refused.stderr).to.contain("QUESTION_UNANSWERED");
    expect(await readFile(file, "utf8")).to.equal(before);
  });
});
