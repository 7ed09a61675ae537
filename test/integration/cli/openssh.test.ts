import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";
import { startSshd } from "#support/sshd.ts";
import type { SshServer } from "#support/ssh-server.ts";

describe("a node that the roster has reached by OpenSSH's client", () => {
  let server: SshServer;
  let project: TestProject;
  before(async () => {
    server = await startSshd({ users: [{ name: "u-none", shell: "/usr/sbin/nologin" }] });
    project = new TestProject({
      "roster/far.yaml": `nodes:
  far:
    address: 127.0.0.1
    port: ${server.port}
    transport: openssh
    identityFile: ${server.identityFile}
    hostKeys: [${server.hostKey}]
    stateDir: ${server.folder}/state
  none:
    address: 127.0.0.1
    port: ${server.port}
    user: u-none
    identityFile: ${server.identityFile}
    hostKeys: [${server.hostKey}]
  none-by-ssh:
    stateDir: /var/lib/none
    transport: openssh
    address: 127.0.0.1
    port: ${server.port}
    user: u-none
    identityFile: ${server.identityFile}
    hostKeys: [${server.hostKey}]
`,
      "states/file.yaml": `steps:\n  - id: file\n    file.managed: { path: ${server.folder}/managed, content: "{{facts.os.id}}\\n" }\n`,
    });
  });
  after(async () => {
    await project?.remove();
    await server?.stop();
  });

  it("is pinged, told what to run, and brought into a state", async () => {
    const ping = await project.kcore("ping", "--on", "far", "-o", "json");
    expect(ping.code, ping.stderr).to.equal(0);
    expect((JSON.parse(ping.stdout) as object[])[0])
      .to.include({ outcome: "done" })
      .and.have.property("fingerprint");
    const exec = await project.kcore("exec", "--on", "far", "--shell", "echo out; echo err >&2; exit 7");
    expect([exec.code, exec.stdout, exec.stderr]).to.deep.equal([7, "out\n", "err\n"]);
    const first = await project.kcore("state", "apply", "file", "--on", "far");
    expect(first.stdout).to.match(/^Steps: 1 succeeded \(changed=1\), 0 failed$/m);
    const second = await project.kcore("state", "apply", "file", "--on", "far");
    expect(second.stdout).to.match(/^Steps: 1 succeeded \(changed=0\), 0 failed$/m);
  });

  it("O7: whose refusal ping and exec tell in its own words", async () => {
    const said = "\n  | This account is currently not available.\n";
    for (const node of ["none", "none-by-ssh"]) {
      expect((await project.kcore("ping", "--on", node)).stdout).to.contain(`${node}:${said}`);
      const { stderr } = await project.kcore("exec", "--on", node, "--", "true");
      expect(stderr).to.contain("[NODE_SHELL_UNUSABLE]").and.contain(said);
    }
  });
});
