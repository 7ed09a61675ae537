import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject } from "#support/kcore.ts";
import { readPages } from "#support/pages.ts";
import { kcoreEnvironment } from "#support/program.ts";

describe("kcore roster import", () => {
  let project: TestProject;
  const read = (name: string): string => readFileSync(join(project.project, name), "utf8");
  const write = (files: Readonly<Record<string, string>>): void =>
    project.write(Object.fromEntries(Object.entries(files).map(([name, text]) => [`project/${name}`, text])));

  beforeEach(() => {
    project = new TestProject({
      "inventory/hosts.ini":
        "[web]\nw1 ansible_host=192.0.2.11 ansible_user=ops ansible_password=Top5ecret\nhere ansible_user=ops\n",
      "inventory/group_vars/web/main.yml": "port: 80\n",
    });
  });
  afterEach(() => project.remove());

  it("writes a new roster file once, with the variables beside the inventory, and names what is left out", async () => {
    const first = await project.call(["roster", "import", "inventory/hosts.ini"]);
    expect(first.code, first.stderr).to.equal(0);
    expect(first.stdout).to.equal(
      "imported 1 nodes, 1 groups, 0 jump hosts into roster/hosts.yaml\nnext: kcore roster trust '*'\n",
    );
    expect(first.stderr)
      .to.contain("inventory/hosts.ini:2  left out: ansible_password")
      .and.not.to.contain("Top5ecret");
    expect(first.stderr).to.contain(
      "hosts.ini:3  left out: the node here: it is in the roster already, at roster/nodes.yaml:2",
    );
    expect(read("roster/hosts.yaml")).to.contain("vars: { port: 80 }");
    const listed = await project.call(["roster", "list", "--on", "group:web", "-o", "json"]);
    expect((JSON.parse(listed.stdout) as { name: string }[]).map(({ name }) => name)).to.deep.equal(["w1"]);
    writeFileSync(join(project.project, "more.csv"), "name,address\nc1,192.0.2.21\n");
    const second = await project.call(["roster", "import", "more.csv", "--file", "hosts.yaml"]);
    expect([second.code, second.stderr]).to.deep.equal([2, second.stderr]);
    expect(second.stderr).to.contain("roster/hosts.yaml is there already");
    expect(read("roster/hosts.yaml")).not.to.contain("c1");
  });

  it("imports a folder as Ansible reads it, without files encrypted by Ansible Vault", async () => {
    write({
      "fleet/10-web": "[web]\nweb1 ansible_user=ops\n",
      "fleet/20-db.yml": "db: { hosts: { db1: { ansible_user: ops } } }\n",
      "fleet/old.bak": "[web]\nold1\n",
      "fleet/group_vars/web/a.yml": "port: 80\n",
      "fleet/group_vars/web/a.yml~": "port: 81\n",
      "fleet/group_vars/web/notes.txt": "not: this\n",
      "fleet/group_vars/web/tls/b.yml": "tls: true\n",
      "fleet/group_vars/web/vault.yml": "$ANSIBLE_VAULT;1.1;AES256\n61\n",
    });
    const { code, stdout, stderr } = await project.call(["roster", "import", "fleet", "--dry-run"]);
    expect(code, stderr).to.equal(0);
    expect(stdout).to.contain("vars: { port: 80, tls: true }").and.contain("  db1:").and.not.contain("old1");
    expect(stderr).to.contain("vault.yml:1  left out: the file: it is encrypted by Ansible Vault");
  });

  it("imports the inventory of docs/rosters.md, and leaves out what the page says", async () => {
    const blocks = readPages().flatMap((page) => page.blocks);
    const shown = (start: string): string => blocks.find(({ text }) => text.startsWith(start))?.text.trimEnd() ?? "";
    write({ "inventory.ini": shown("[web]\n") });
    const { stdout, stderr } = await project.call(["roster", "import", "inventory.ini", "--dry-run"]);
    expect(stdout.replace(/^#.*\n/, "").trimEnd()).to.equal(shown('defaults:\n  identityFile: "~/.ssh/fleet"'));
    expect(stderr.trimEnd()).to.equal(shown("inventory.ini:5"));
  });

  it("runs no script, plugin, lookup or configuration that an inventory names", async () => {
    const marker = join(project.path, "ran");
    write({
      "hostile/hosts": `#!/bin/sh\ntouch ${marker}\necho '{}'\n`,
      "hostile/ansible.cfg": `[defaults]\nvault_password_file=./hosts\nvars_plugins=./plugins\n`,
      "hostile/plugins/evil.py": `open("${marker}", "w")\n`,
      "hostile/group_vars/all/vault": "$ANSIBLE_VAULT;1.1;AES256\n61\n",
      "hostile/good": `[web]\nweb1 ansible_user=u a="{{ lookup('pipe', 'touch ${marker}') }}"\n`,
      "hostile/cloud.yml": "plugin: ansible.builtin.constructed\n",
    });
    chmodSync(join(project.project, "hostile/hosts"), 0o755);
    for (const file of ["hostile/hosts", "hostile/cloud.yml"]) {
      const { code, stderr } = await project.call(["roster", "import", "--from", "ansible", file, "--dry-run"]);
      expect([code, stderr]).to.deep.equal([2, stderr]);
      expect(stderr).to.contain(`import what it prints: ansible-inventory -i ${file} --list | kcore roster import`);
    }
    const { stdout } = await project.call(["roster", "import", "hostile/good", "--dry-run"]);
    expect(stdout).to.contain("  web1:\n");
    expect(existsSync(marker)).to.equal(false);
  });

  it("prints a dry run, reads stdin, follows Include, and writes JSON, outside a project too", () => {
    const folder = join(project.path, "elsewhere");
    mkdirSync(join(folder, "config.d"), { recursive: true });
    writeFileSync(join(folder, "config.d", "one"), "Host one\n  HostName 192.0.2.1\n  User ops\n");
    writeFileSync(join(folder, "config"), "Include config.d/*\nHost *\n  Compression yes\n");
    const run = (words: readonly string[], input = ""): string =>
      execFileSync(kcoreProgram, ["roster", "import", "--dry-run", ...words], {
        cwd: folder,
        input,
        encoding: "utf8",
        stdio: ["pipe", "pipe", "ignore"],
        env: { ...process.env, ...kcoreEnvironment, KCORE_HOME: join(project.path, "home") },
      });
    expect(run(["config"])).to.contain("  one:\n    address: 192.0.2.1\n    user: ops\n");
    const result = JSON.parse(run(["-", "-o", "json"], "name;address\nn1;192.0.2.1\n;\n")) as Record<string, unknown>;
    expect(result).to.deep.include({
      file: "roster/csv.yaml",
      written: false,
      formats: ["csv"],
      nodes: ["n1"],
      leftOut: [],
    });
  });
});
