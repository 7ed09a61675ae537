import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";
import { readPages } from "#support/pages.ts";

describe("a roster from programs and URLs", () => {
  let project: TestProject;
  beforeEach(() => {
    project = new TestProject();
  });
  afterEach(() => project.remove());

  it("runs the program of docs/rosters.md, and lists each node's source", async () => {
    const blocks = readPages().flatMap((page) => page.blocks);
    const text = blocks.find((block) => block.text.includes("# roster/machines.sh"))?.text ?? "";
    project.write({
      "project/roster/machines.sh": text,
      "project/machines.csv": "name,address,role\nm1,192.0.2.1,worker\n",
    });
    chmodSync(join(project.project, "roster/machines.sh"), 0o755);
    const list = await project.kcore("roster", "list", "--on", "m1 or gone");
    expect(list.code, list.stderr).to.equal(0);
    expect(list.stdout).to.match(/^NAME.*SOURCE$/m);
    expect(list.stdout).to.match(/^m1 .*roster\/machines\.sh$/m);
    expect(list.stdout).to.match(/^gone .*roster\/nodes\.yaml$/m);
    const ping = await project.kcore("ping", "--on", "here");
    expect(ping.code, ping.stderr).to.equal(0);
    const check = await project.kcore("roster", "check");
    expect(check.stdout).to.contain("3 nodes in roster/nodes.yaml, roster/machines.sh: in order");
  });

  it("refuses from a program whatever would read files, commands, secrets or logins of this machine", async () => {
    const answer = {
      defaults: { identityFile: "~/.ssh/id_ed25519", vars: { token: "age:YWdlLWVuY3J5cHRpb24ub3JnL3YxAAAA" } },
      groups: { mine: { sudo: { password: { file: "/etc/shadow" } } } },
      jumps: { gate: { address: "192.0.2.9", identityPassphrase: { command: "touch ran" } } },
      nodes: {
        m1: { address: "192.0.2.1", consoleLog: "/var/log/x", identityPassphrase: { env: "TOKEN" } },
        m4: { address: "192.0.2.4", vars: { deep: { key: "command:touch ran" } }, labels: { a: "file:/etc/shadow" } },
        m2: { transport: "local" },
        m3: { groups: ["locals"] },
      },
    };
    project.write({
      "project/roster/cmdb.sh": `#!/bin/sh\ncat <<'END'\n${JSON.stringify(answer, undefined, 1).replace("age:", "\\u0061ge:")}\nEND\n`,
      "project/roster/locals.yaml": "groups:\n  locals: { transport: local }\n",
    });
    chmodSync(join(project.project, "roster/cmdb.sh"), 0o755);
    const { code, stderr } = await project.call(["roster", "list"]);
    expect(code).to.equal(2);
    const refused = ["identityFile", "sudo.password", "identityPassphrase", "consoleLog", "transport: local"];
    const references = ["defaults.vars.token", "nodes.m4.vars.deep.key", "nodes.m4.labels.a"];
    for (const what of [...refused, ...references.map((place) => `a reference to a secret in ${place}`)])
      expect(stderr).to.contain(`roster/cmdb.sh may not give “${what}”`);
    expect(stderr).to.contain("“m3” comes from roster/cmdb.sh and cannot be this machine itself");
    expect(stderr).to.match(/\.kcore\/roster\/cmdb\.sh\.yaml:\d+:\d+/);
  });

  it("is not queried by kcore check", async () => {
    project.write({
      "project/roster/cmdb.sh":
        "#!/bin/sh\necho ran >>ran\necho 'nodes: { m1: { address: 192.0.2.1 } }\ngroups: { theirs: {} }\njumps: { gate: { address: 192.0.2.9 } }'\n",
      "project/roster/more.yaml": "nodes: { m2: { address: 192.0.2.2, groups: [theirs], jump: [gate] } }\n",
      "project/orchestrate/o.yaml": "stages:\n  - id: one\n    on: m1\n    apply: [s]\n",
      "project/states/s.yaml": "steps:\n  - id: a\n    command.run: { cmd: 'true' }\n",
    });
    chmodSync(join(project.project, "roster/cmdb.sh"), 0o755);
    const first = await project.call(["check"]);
    expect([first.code, first.stderr]).to.deep.equal([
      0,
      "roster/cmdb.sh has never answered, and check does not ask it: kcore roster check does\n",
    ]);
    expect(first.stdout).to.contain("nodes unknown: in order");
    expect((await project.call(["check", "-o", "github"])).stderr).to.equal(first.stderr);
    expect(existsSync(join(project.project, "ran"))).to.equal(false);
    expect((await project.call(["roster", "check"])).code).to.equal(0);
    const second = await project.call(["check"]);
    expect([second.code, second.stderr]).to.deep.equal([0, ""]);
    expect(readFileSync(join(project.project, "ran"), "utf8")).to.equal("ran\n");
  });

  it("reads an https URL with a known certificate, follows no redirect, and falls back to the last answer", async () => {
    const [key, cert] = [join(project.path, "key.pem"), join(project.path, "cert.pem")];
    const request = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 1 -subj /CN=localhost";
    const names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", cert];
    execFileSync("openssl", [...request.split(" "), ...names], { stdio: "ignore" });
    let answer = [200, {}, '{"nodes": {"u1": {"address": "192.0.2.5"}}}'] as [number, Record<string, string>, string];
    const server: Server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, (_, response) => {
      const [status, headers, body] = answer;
      response.writeHead(status, headers).end(body);
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    try {
      const url = `https://localhost:${(server.address() as AddressInfo).port}/roster`;
      project.write({ "project/roster/net.url": `# the inventory\n${url}\n` });
      const list = (...words: readonly string[]) =>
        project.start(["roster", "list", "-o", "json", ...words], { NODE_EXTRA_CA_CERTS: cert }).ended;
      const first = await list("--on", "u1");
      expect(first.code, first.stderr).to.equal(0);
      expect(JSON.parse(first.stdout)).to.have.nested.property("[0].source", "roster/net.url");
      answer = [503, {}, "later"];
      expect((await list("--on", "u1")).code).to.equal(0);
      const refused = await list("--refresh");
      expect(refused.code).to.equal(2);
      expect(refused.stderr).to.contain("ROSTER_SOURCE").and.to.contain("it answers 503 Service Unavailable");
      answer = [200, {}, `nodes: {} #${"x".repeat(9 << 20)}`];
      expect((await list("--refresh")).stderr).to.contain("it sends more than 8 MiB");
      answer = [503, {}, "later"];
      const stale = await project.start(["roster", "list", "--refresh"], {
        NODE_EXTRA_CA_CERTS: cert,
        KCORE_ROSTER_STALE: "1",
      }).ended;
      expect([stale.code, stale.stdout.includes("u1")]).to.deep.equal([0, true]);
      expect(stale.stderr).to.contain("taken from what it said");
      answer = [302, { location: "http://192.0.2.1/" }, ""];
      expect((await list("--refresh")).stderr).to.contain("redirect");
      const unknown = await project.kcore("roster", "list", "--refresh");
      expect(unknown.stderr).to.match(/certificate/);
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });
});
