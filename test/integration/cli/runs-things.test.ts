import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import { runRequest } from "#support/runs.ts";
import { TestProject } from "#support/kcore.ts";

const fixtures = join(import.meta.dirname, "../../fixtures/runs");

describe("recorded runs from the command line", () => {
  let project: TestProject;
  before(() => {
    project = new TestProject();
    record("20261101-061500-0001", "done");
    record("20261102-061500-0002", "failed");
    record("20261103-061500-0003", "deploy-three");
  });
  after(() => project.remove());

  function record(id: string, name: string): void {
    const folder = join(project.project, ".kcore/runs", id);
    mkdirSync(folder, { recursive: true });
    cpSync(join(fixtures, `${name}.ndjson`), join(folder, "events.ndjson"));
    const created = Date.parse(id.replace(/^(....)(..)(..).*/, "$1-$2-$3T06:15:00Z"));
    const request = runRequest({ command: `kcore orchestrate deploy_node ${"n1,n2,n3,".repeat(20)}` });
    const header = { version: 1, id, nonce: "0", who: "ops@bastion", created, attended: false, request };
    writeFileSync(join(folder, "run.json"), JSON.stringify(header));
  }
  const kcore = async (...words: string[]) => {
    const { code, stdout, stderr } = await project.call(["runs", ...words]);
    expect([code, stderr]).to.deep.equal([0, ""]);
    return stdout;
  };

  it("are listed, all or those of one state", async () => {
    expect((await kcore("list")).split("\n").map((line) => line.slice(0, 28).trim())).to.deep.equal([
      "ID                    STATE",
      "20261101-061500-0001  done",
      "20261102-061500-0002  failed",
      "20261103-061500-0003  done",
      "",
    ]);
    const failed = JSON.parse(await kcore("list", "--state", "failed", "-o", "json")) as object[];
    expect(failed).to.have.length(1);
    expect(failed[0]).to.deep.include({ id: "20261102-061500-0002", nodes: ["n1", "n2"], exitCode: 1 });
    expect((await project.call(["runs", "list", "--state", "faild"])).stderr).to.contain(
      "it is one of starting, running",
    );
  });

  it("are listed by failure, node and age", async () => {
    const ids = async (...words: string[]) =>
      (JSON.parse(await kcore("list", "-o", "json", ...words)) as { id: string }[]).map(({ id }) => id.slice(-4));
    expect(await ids("--failed")).to.deep.equal(["0002"]);
    expect(await ids("--node", "n3")).to.deep.equal(["0003"]);
    expect(await ids("--node", "n2", "--node", "n3")).to.deep.equal(["0001", "0002", "0003"]);
    expect(await ids("--since", "2026-11-02")).to.deep.equal(["0002", "0003"]);
    expect(await ids("--since", "2026-11-02T06:15:01Z", "--failed")).to.deep.equal([]);
    expect(await kcore("list", "--node", "n3", "--failed")).to.equal("no such run\n");
    const wrong = await project.call(["runs", "list", "--since", "yesterday"]);
    expect(wrong.stderr).to.contain("an age (36h, 30d) or a date (2026-11-21) is wanted");
  });

  it("are summed up by step and node", async () => {
    const stats = await kcore("stats");
    expect(stats).to.match(/^3 runs from 2026-11-01 to 2026-11-03, 3 nodes$/m);
    expect(stats).to.match(/^STEP +MODULE +TIMES +USUAL +LONGEST +ON$/m);
    expect(stats).to.match(/^NODE +RUNS +FAILED +UNREACHABLE +TIME +SLOWEST STEP$/m);
    const { runs, nodes, steps } = JSON.parse(await kcore("stats", "--node", "n1", "-o", "json")) as {
      runs: number;
      nodes: { node: string; runs: number; failed: number }[];
      steps: { title: string; failed: number }[];
    };
    expect(runs).to.equal(3);
    expect(nodes.map(({ node, failed }) => [node, failed])).to.deep.equal([["n1", 1]]);
    expect(steps.find(({ title }) => title === "install tool")?.failed).to.equal(1);
    expect(await kcore("stats", "--since", "2026-11-20")).to.equal("no such run\n");
  });

  it("are shown on one screen, as JSON, and event by event", async () => {
    const text = await kcore("show", "20261102-061500-0002");
    expect(text).to.contain("states/disks.yaml:2:5  the command ended with exit code 100");
    expect(text).to.contain("kcore runs resume 20261102-061500-0002");
    const data = JSON.parse(await kcore("show", "20261102-061500-0002", "-o", "json")) as {
      failures: { at?: object; log?: string }[];
    };
    expect(data.failures[0]).to.deep.include({ at: { file: "states/disks.yaml", line: 2, column: 5, length: 4 } });
    expect(await kcore("show", "20261102-061500-0002", "--events", "-o", "json")).to.equal(
      readFileSync(join(fixtures, "failed.ndjson"), "utf8"),
    );
  });

  it("are compared by state, nodes and steps", async () => {
    const table = await kcore("diff", "20261101-061500-0001", "20261102-061500-0002");
    expect(table).to.match(/^state +done +failed$/m);
    expect(table).to.match(/^n2 +done +unreachable$/m);
    expect(table).to.match(/^disks: install tool +new +– → failed +n1$/m);
    const data = JSON.parse(await kcore("diff", "20261101-061500-0001", "last", "-o", "json")) as { nodes: object[] };
    expect(data.nodes).to.deep.equal([{ node: "n3", b: "done" }]);
  });

  it("are replayed as lines at any speed", async () => {
    const played = await kcore("replay", "last", "--verbose", "--speed", "max");
    expect(played).to.equal(await kcore("show", "last", "--events"));
    const json = await kcore("replay", "20261101-061500-0001", "--speed", "100", "--output", "json");
    expect(json).to.equal(readFileSync(join(fixtures, "done.ndjson"), "utf8"));
  });

  it("are exported in the format of the file's extension, readable for the owner only", async () => {
    const texts: Readonly<Record<string, RegExp>> = {
      ".ndjson": /^\{"seq":1,/,
      ".json": /"id": "20261103-061500-0003"/,
      ".txt": /^→ deploy_node/,
      ".xml": /<testsuite name="n3"/,
      ".html": /^<!doctype html>/i,
      ".cast": /^\{"version":2,/,
    };
    for (const [extension, pattern] of Object.entries(texts)) {
      const file = join(project.path, `run${extension}`);
      expect(await kcore("export", "last", "--file", file)).to.equal("");
      expect(readFileSync(file, "utf8")).to.match(pattern);
      expect(statSync(file).mode & 0o777).to.equal(0o600);
    }
    const existing = join(project.path, "existing.json");
    writeFileSync(existing, "", { mode: 0o644 });
    await kcore("export", "last", "--file", existing);
    expect(statSync(existing).mode & 0o777).to.equal(0o600);
    const archive = join(project.path, "run.tar.gz");
    await kcore("export", "last", "--file", archive);
    expect(execFileSync("tar", ["-tzf", archive], { encoding: "utf8" })).to.contain("0003/events.ndjson");
    const unknown = await project.call(["runs", "export", "last", "--file", "run.pdf"]);
    expect([unknown.code, unknown.stderr]).to.deep.include(2).and.to.have.property("1").that.contains("--format");
  });

  it("are pruned by number, age and size, resumable ones only on request", async () => {
    const ids = () => readdirSync(join(project.project, ".kcore/runs")).map((id) => id.slice(-4));
    expect(await kcore("prune")).to.equal("0 removed\n");
    expect(await kcore("prune", "--keep", "1", "--older-than", "5200w")).to.equal("0 removed\n");
    expect(await kcore("prune", "--keep", "2", "--dry-run")).to.contain("would remove 20261101-061500-0001");
    const resumable = "1 can still be resumed and stay; --resumable removes them too\n";
    expect(await kcore("prune", "--keep", "1", "--dry-run")).to.match(new RegExp(`1 would be removed\n${resumable}$`));
    expect(await kcore("prune", "--max-size", "1K", "--resumable", "--dry-run")).to.contain("3 would be removed\n");
    expect(ids()).to.deep.equal(["0001", "0002", "0003"]);
    expect(await kcore("prune", "--keep", "2")).to.equal("1 removed\n");
    expect(ids()).to.deep.equal(["0002", "0003"]);
    expect(existsSync(join(project.project, ".kcore/runs"))).to.equal(true);
  });
});
