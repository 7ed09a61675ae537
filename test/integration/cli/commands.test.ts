import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

describe("kcore's commands", () => {
  let project: TestProject;
  beforeEach(() => (project = new TestProject()));
  afterEach(() => project.remove());

  it("prints its version, suggests the closest command and flag, and prints errors as JSON", async () => {
    expect((await project.call(["--version"])).stdout).to.match(/^\d+\.\d+\.\d+\n$/);
    const command = await project.call(["orchestarte"]);
    expect(command.code).to.equal(2);
    expect(command.stderr).to.contain("did you mean “orchestrate”?");
    expect((await project.call(["ping", "--onn", "x"])).stderr).to.contain("did you mean “--on”?");
    const asked = await project.call(["runs", "show", "nope", "-o", "json"]);
    expect(JSON.parse(asked.stderr)).to.have.nested.property("problems[0].code", "RUN_UNKNOWN");
  });

  it("exits with the same code after the reader of stderr closed it", async () => {
    const { child, ended } = project.start(["explain", "NOPE"]);
    child.stderr?.destroy();
    expect((await ended).code).to.equal(2);
  });

  it("roster add appends the node's lines and changes no other line", async () => {
    const file = join(project.project, "roster/nodes.yaml");
    const before = `# mine\n${readFileSync(file, "utf8")}# end\n`;
    writeFileSync(file, before);
    chmodSync(file, 0o600);
    const added = await project.call(["roster", "add", "n7", "192.0.2.17"]);
    expect(added.stdout, "the hint names the key for its role")
      .to.contain("no role: n7; ")
      .and.contain("roles: [worker]");
    expect((await project.call(["roster", "check"])).stdout).to.match(/^no role: .*n7/m);
    const after = readFileSync(file, "utf8");
    expect(
      after
        .split("\n")
        .filter((line) => !before.split("\n").includes(line))
        .join("\n"),
    ).to.match(/^ {2}n7:\n {4}address: 192\.0\.2\.17\n {4}id: [0-9a-f-]{36}$/);
    expect(statSync(file).mode & 0o777).to.equal(0o600);
  });

  it("roster add writes nothing when the roster would become invalid", async () => {
    const file = join(project.project, "roster/nodes.yaml");
    const before = readFileSync(file, "utf8");
    const refused = await project.call(["roster", "add", "bad name", "192.0.2.999", "--group", "nope"]);
    expect(refused.code).to.equal(2);
    expect(refused.stderr).to.contain("[ROSTER_INVALID]").and.contain("nothing was added");
    expect(readFileSync(file, "utf8")).to.equal(before);
  });

  it("roster adopt gives a machine a new id, and keeps the id that its disks were made with", async () => {
    const former = "3f0c2a52-6c1b-4c55-9d8e-0d6a4c1f7b21";
    await project.call(["roster", "add", "old1", "192.0.2.21", "--id", former]);
    const idsOf = async (): Promise<{ id: string; formerIds?: readonly string[] }> => {
      const { stdout } = await project.call(["roster", "list", "--on", "old1", "-o", "json"]);
      const [{ id, formerIds }] = JSON.parse(stdout) as [{ id: string; formerIds?: readonly string[] }];
      return { id, ...(formerIds && { formerIds }) };
    };
    expect((await project.call(["roster", "adopt", "old1"])).stdout).to.contain(
      `takes over what kcore made for ${former}`,
    );
    const first = await idsOf();
    expect(first.formerIds).to.deep.equal([former]);
    await project.call(["roster", "adopt", "old1"]);
    const second = await idsOf();
    expect(new Set([former, first.id, second.id]).size).to.equal(3);
    expect(second.formerIds, "disks by the first, certificates of either").to.deep.equal([former, first.id]);
    // An operator may give the former id, as preflight's refusal of a re-added machine names it.
    const other = "6c1b2a52-6c1b-4c55-9d8e-0d6a4c1f7b21";
    await project.call(["roster", "adopt", "old1", other]);
    expect(await idsOf()).to.deep.equal({ id: second.id, formerIds: [former, first.id, other] });
    await project.call(["roster", "add", "old2", "192.0.2.22"]);
    const inUse: readonly (readonly [string, string])[] = [
      ["old2", second.id],
      ["old2", first.id],
      ["old1", second.id],
    ];
    for (const [name, id] of inUse) {
      const taken = await project.call(["roster", "adopt", name, id]);
      expect([taken.code, taken.stderr]).to.deep.equal([2, taken.stderr]);
      expect(taken.stderr).to.contain(`“${name}” has the id ${id}, as “old1” has`);
    }
    const unknown = await project.call(["roster", "adopt", "old"]);
    expect([unknown.code, unknown.stderr.includes("old1")]).to.deep.equal([2, true]);
  });

  it("roster add creates the file that --file names", async () => {
    expect((await project.call(["roster", "add", "n8", "192.0.2.18", "--file", "more.yaml"])).code).to.equal(0);
    expect(readFileSync(join(project.project, "roster/more.yaml"), "utf8")).to.match(/^nodes:\n {2}n8:\n/);
    expect((await project.call(["roster", "add", "n9", "192.0.2.19", "--file", "more.txt"])).code).to.equal(2);
  });

  it("refuses as a project a folder that holds only a roster (S-20)", async () => {
    mkdirSync(join(project.path, "hostile/roster"), { recursive: true });
    const refused = await project.call(["roster", "list", "--project", join(project.path, "hostile")]);
    expect(refused.stderr).to.contain("[PROJECT_NOT_FOUND]");
  });

  it("modules shows arguments and an example, and finds modules by a word", async () => {
    const shown = await project.call(["modules", "service.running"]);
    expect(shown.stdout).to.contain("enabled").and.to.contain("Example:\n  service.running: {");
    expect((await project.call(["modules", "servce.running"])).stderr).to.contain("did you mean “service.running”?");
    const action = await project.call(["modules", "kubernetes.node"]);
    expect(action.stdout)
      .to.contain("run: kubernetes.node")
      .and.to.match(/drained +boolean +default false +Cordons the node/);
    const found = await project.call(["modules", "--search", "drain", "-o", "json"]);
    expect(JSON.parse(found.stdout)).to.deep.include({
      name: "kubernetes.node",
      summary: "Keeps labels, annotations and taints of a node; cordons, drains, waits for and deletes it.",
      found: "summary (an action of orchestrations)",
    });
  });

  it("modules --examples shows the steps that the tests apply to real machines, and the refused ones", async () => {
    const { stdout } = await project.call(["modules", "file.managed", "--examples"]);
    expect(stdout)
      .to.match(/^file\.managed:\n/)
      .and.to.contain("# refused with FILE_NO_PARENT\nfile.managed:\n  path: ");
    expect((await project.call(["modules", "kubernetes.node", "--examples"])).stderr).to.contain("is an action");
    expect((await project.call(["modules", "--examples"])).stderr).to.contain("[USAGE]");
  });

  it("treats an empty KCORE_HOME as unset", async () => {
    const file = join(project.path, "passphrase");
    writeFileSync(file, "correct horse battery staple\n", { mode: 0o600 });
    const env = { KCORE_HOME: "", HOME: project.path };
    const { code, stderr } = await project.call(["create", "cluster", "--passphrase-file", file], env);
    expect(code, stderr).to.equal(0);
    expect(existsSync(join(project.path, ".kcore/config"))).to.equal(true);
  });
});
