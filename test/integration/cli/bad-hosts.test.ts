import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject, type Ended } from "#support/kcore.ts";
import { startSshd } from "#support/sshd.ts";
import type { SshServer } from "#support/ssh-server.ts";

const step = 'steps:\n  - id: written\n    file.managed: { path: "/tmp/kcore-bad-input", content: x }\n';
describe("kcore, given a host that is not what the roster says", () => {
  let project: TestProject;
  const written = "/tmp/kcore-bad-input";

  beforeEach(() => {
    project = new TestProject({ "states/good.yaml": step });
  });
  afterEach(() => project.remove());

  const put = (files: Readonly<Record<string, string>>): void => {
    project.write(Object.fromEntries(Object.entries(files).map(([name, text]) => [`project/${name}`, text])));
  };
  const expectRefusal = (ended: Ended, exit: number, code: string): string => {
    const said = ended.stdout + ended.stderr;
    expect(ended.code, said).to.equal(exit);
    expect(said).to.include(`[${code}]`);
    expect(said.trimEnd().split("\n").length, said).to.be.at.most(24);
    expect(said, "a stack").to.not.match(/^ +at .*\.ts:/m);
    expect(existsSync(written)).to.equal(false);
    return said;
  };

  it("says which host did not answer, and exits 3 when nothing else failed", async () => {
    const said = expectRefusal(await project.kcore("state", "apply", "good", "--on", "gone"), 3, "HOST_UNREACHABLE");
    expect(said)
      .to.match(/gone/)
      .and.match(/127\.0\.0\.1/);
    expect(said).to.match(/kcore runs resume \S+/);
  });

  describe("to an SSH server", () => {
    let server: SshServer;
    before(async () => {
      server = await startSshd();
    });
    after(() => server.stop());

    const roster = (hostKey: string): string => `nodes:
  changed:
    address: 127.0.0.1
    port: ${server.port}
    identityFile: ${server.identityFile}
    hostKeys: [${hostKey}]
    stateDir: ${join(project.path, "state")}
`;

    it("refuses a changed host key, shows both and how to trust the new one, and sends nothing (S-2)", async () => {
      const other = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEVjC0ds2MBSreAuZIHQOAGBixdxvhSt7SAVziDMCK/x";
      put({ "roster/more.yaml": roster(other) });
      const said = expectRefusal(
        await project.kcore("state", "apply", "good", "--on", "changed"),
        1,
        "HOST_KEY_CHANGED",
      );
      expect(said).to.match(/kcore roster trust --replace changed/);
      expect(said.match(/SHA256:\S+/g)?.length).to.be.at.least(2);
      expect(await server.log()).to.not.match(/Accepted/);
    });
  });
});
