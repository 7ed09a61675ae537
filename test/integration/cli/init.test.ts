import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { TestProject } from "#support/kcore.ts";

describe("kcore init", () => {
  let project: TestProject;
  const place = (...names: readonly string[]): string => join(project.project, ...names);

  beforeEach(() => {
    project = new TestProject();
  });
  afterEach(() => project.remove());

  it("creates a project whose roster is valid and whose orchestrations can be planned", async () => {
    const { code, stdout, stderr } = await project.kcore("init", "fresh");
    expect(code, stderr).to.equal(0);
    expect(stdout).to.contain("A new kcore project in fresh, under git");
    const check = await project.kcore("roster", "check", "--project", "fresh");
    expect(check.code, check.stderr).to.equal(0);
    expect(check.stdout).to.contain("5 nodes in roster/nodes.yaml: in order");
    const listed = await project.kcore("roster", "list", "--project", "fresh", "-o", "json");
    const nodes = JSON.parse(listed.stdout) as { name: string; roles: string[]; taints: unknown[]; id: string }[];
    expect(nodes.filter(({ roles }) => roles.includes("controller"))).to.have.length(3);
    expect(nodes.filter(({ roles }) => roles.includes("worker")).map(({ name }) => name)).to.deep.equal([
      "worker1",
      "infra1",
    ]);
    expect(nodes.at(-1)?.taints).to.deep.equal([{ key: "dedicated", value: "infra", effect: "NoSchedule" }]);
    expect(new Set(nodes.map(({ id }) => id))).to.have.length(5);
    const wrong = await project.kcore("orchestrate", "deploy_node", "nobody", "--dry-run", "--project", "fresh");
    expect([wrong.code, wrong.stderr]).to.deep.equal([2, wrong.stderr]);
    expect(wrong.stderr).to.contain("TARGET_UNKNOWN").and.to.contain("controller1 (controller)");
  });

  it("binds a project to its cluster, apart from the clusters of other projects", async () => {
    project.write({ "project/passphrase": "correct horse battery" });
    chmodSync(place("passphrase"), 0o600);
    const file = ["--passphrase-file", "passphrase"];
    const contextIn = async (dir: string): Promise<string> =>
      (await project.kcore("config", "current-context", "--project", dir)).stdout.trim();
    await project.kcore("init", "a", "--empty");
    const first = await project.kcore("create", "cluster", "--project", "a", "--context", "lab", ...file);
    expect(first.stdout, first.stderr).to.contain("it is the current context").and.to.contain("kcore.yaml names it");
    const made = await project.kcore("init", "b", "--empty");
    expect([made.stdout.includes("Its cluster"), existsSync(place("b/kcore.yaml"))]).to.deep.equal([false, false]);
    const taken = await project.kcore("create", "cluster", "--project", "b", "--context", "lab", ...file);
    expect(taken.stderr).to.contain("PKI_CONTEXT_EXISTS").and.not.to.contain("--force");
    const named = await project.kcore("create", "cluster", "--project", "b", "--context", "dc2", ...file);
    expect(named.stdout, named.stderr).to.contain("kcore.yaml names it");
    const other = await project.kcore("create", "cluster", "--project", "b", "--context", "prod", ...file);
    expect([other.code, other.stderr]).to.deep.equal([2, other.stderr]);
    expect(other.stderr).to.contain("this project is of the cluster “dc2”").and.to.contain("change cluster: in");
    await project.kcore("init", "c", "--empty", "--context", "prod");
    const second = await project.kcore("create", "cluster", "--project", "c", ...file);
    expect(second.stdout, second.stderr).to.contain("created the cluster “prod”").and.to.contain("stays “lab”");
    expect([await contextIn("a"), await contextIn("b"), await contextIn("c")]).to.deep.equal(["lab", "dc2", "prod"]);
    await project.kcore("config", "use-context", "prod");
    expect([await contextIn("a"), await contextIn("c")]).to.deep.equal(["lab", "prod"]);
    project.write({ "project/c/kcore.yaml": "cluster: X\n" });
    const wrong = await project.kcore("config", "current-context", "--project", "c");
    expect(wrong.stderr).to.contain("kcore.yaml:1:10").and.to.contain("must be a cluster's name");
  });

  it("puts the project under git with the pre-commit hook, unless it lies in a repository already", async () => {
    await project.kcore("init", "fresh", "--empty");
    expect(readFileSync(place("fresh/hooks/pre-commit"), "utf8")).to.equal("#!/bin/sh\nexec kcore check\n");
    expect(statSync(place("fresh/hooks/pre-commit")).mode & 0o111).to.equal(0o111);
    const git = (...words: readonly string[]): string =>
      execFileSync("git", ["-C", place("fresh"), ...words], { encoding: "utf8" });
    expect(git("config", "core.hooksPath")).to.equal("hooks\n");
    expect(git("status", "--porcelain", "--ignored", "-uall")).not.to.contain("!!");
    const { stdout } = await project.kcore("init", "fresh/inner");
    expect(stdout).to.contain("in the git repository that is there").and.to.contain("git config core.hooksPath hooks");
    expect(existsSync(place("fresh/inner/.git"))).to.equal(false);
  });

  it("writes nothing where one of its files exists, and accepts a .gitignore that ignores .kcore", async () => {
    project.write({
      "project/a/hooks/pre-commit": "mine\n",
      "project/b/.gitignore": "node_modules\n",
      "project/c/.gitignore": "x\n/.kcore\n",
    });
    const [a, b, c] = [
      await project.kcore("init", "a"),
      await project.kcore("init", "b"),
      await project.kcore("init", "c"),
    ];
    expect([a.code, b.code, c.code]).to.deep.equal([2, 2, 0]);
    expect(a.stderr).to.contain("holds hooks/pre-commit already");
    expect(b.stderr).to.contain("put the line .kcore/ into .gitignore");
    expect(readdirSync(place("a"))).to.deep.equal(["hooks"]);
    expect(readFileSync(place("c/.gitignore"), "utf8")).to.equal("x\n/.kcore\n");
    expect((await project.kcore("init", "c")).stderr).to.contain("is a kcore project already");
  });
});
