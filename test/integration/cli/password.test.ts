import { execFileSync } from "node:child_process";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { parseHostKey } from "#engine/transport/host-key.ts";
import { TestProject, type Ended } from "#support/kcore.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

/** A machine that has only its live system's root password: a real sshd with accounts of its own. */
describe("kcore node --password-file", () => {
  let server: SshServer;
  let project: TestProject;
  const disks = (...words: readonly string[]): Promise<Ended> => {
    const fingerprint = parseHostKey(server.hostKey)?.fingerprint ?? "";
    return project.kcore("node", "disks", "--node", `127.0.0.1:${server.port}`, "--host-key", fingerprint, ...words);
  };
  const keys = (): Promise<string> =>
    readFile(join(server.home("root"), ".ssh/authorized_keys"), "utf8").catch(() => "");
  const secret = "a live system";

  beforeEach(async () => {
    server = await startSshd({ config: ["PasswordAuthentication yes", "PermitRootLogin yes"] });
    const hash = execFileSync("openssl", ["passwd", "-6", secret], { encoding: "utf8" }).trim();
    const shadow = await readFile(join(server.folder, "shadow"), "utf8");
    await writeFile(join(server.folder, "shadow"), shadow.replace("root:*:", `root:${hash}:`));
    await rm(join(server.home("root"), ".ssh"), { recursive: true });
    project = new TestProject({
      "roster/nodes.yaml": `defaults: { identityFile: ${server.identityFile} }\nnodes: {}\n`,
      password: `${secret}\n`,
    });
  });
  afterEach(async () => {
    await server.stop();
    await project.remove();
  });

  it("leaves the key by one login; the next command needs no password", async () => {
    const file = join(project.project, "password");
    const open = await disks("--password-file", file);
    expect([open.code, await keys()]).to.deep.equal([2, ""]);
    expect(open.stderr).to.contain("FILE_UNTRUSTED").and.to.contain(`others may read the password file ${file}`);
    execFileSync("chmod", ["600", file]);
    const first = await disks("-o", "json", "--password-file", file);
    expect(first.code, first.stderr).to.equal(0);
    expect(JSON.parse(first.stdout)).to.be.an("array");
    expect(first.stderr).to.contain("the password was used once").and.not.to.contain(secret);
    const second = await disks("--ask-password");
    expect(second.code, second.stderr).to.equal(0);
    expect(second.stderr).not.to.contain("password");
    expect((await keys()).trimEnd().split("\n")).to.have.length(1);
    expect((await server.log()).match(/Accepted password/g)).to.have.length(1);
  });

  it("without a terminal --ask-password says what else there is, and so does a login without either", async () => {
    const asked = await disks("--ask-password");
    expect(asked.code).to.equal(2);
    expect(asked.stderr).to.contain("QUESTION_UNANSWERED").and.to.contain("--password-file FILE");
    const refused = await disks();
    expect(refused.code).to.equal(1);
    expect(refused.stderr).to.contain("AUTH_FAILED").and.to.contain("--ask-password puts it there");
    expect(await keys()).to.equal("");
  });
});
