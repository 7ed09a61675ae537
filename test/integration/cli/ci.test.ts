import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { CiWorld, type Ci, type JobEnd } from "#support/ci-world.ts";
import { githubCi } from "#support/github-jobs.ts";
import { gitlabCi } from "#support/gitlab-jobs.ts";
import { root } from "#support/pages.ts";
import type { SshServer } from "#support/ssh-server.ts";
import { startSshd } from "#support/sshd.ts";

const token = "the-token-of-the-service";

/** Runs the pipelines of docs/ci.md: each job's own commands in a clean checkout, against two machines behind real SSH. */
for (const open of [githubCi, gitlabCi])
  describe(`the example of docs/ci.md: ${open === githubCi ? "GitHub" : "GitLab"}`, () => {
    let world: CiWorld;
    let ci: Ci;
    let servers: readonly SshServer[];
    let identity: string;
    const file = (node: string, name: string): string => world.path("machines", node, "www", name);
    const page = (node: string): string | undefined =>
      existsSync(file(node, "index.html")) ? readFileSync(file(node, "index.html"), "utf8") : undefined;
    const goodState = readFileSync(join(root, "examples/ci/states/page.yaml"), "utf8");
    let release = 0;
    /** Commits a page that differs from that of any earlier commit. */
    const commitRelease = (): string =>
      world.commit({ "states/page.yaml": goodState.replace("{{vars.site}},", `{{vars.site}}, release ${++release},`) });

    before(async () => {
      world = await CiWorld.make();
      servers = [await startSshd(), await startSshd()];
      const key = readFileSync(servers[0]?.identityFile ?? "", "utf8");
      const lines = servers.map(({ port, hostKey }, index) => {
        const folder = world.path("machines", `w${index + 1}`);
        mkdirSync(join(folder, "state"), { recursive: true, mode: 0o700 });
        return `  w${index + 1}: { address: 127.0.0.1, port: ${port}, hostKeys: [${hostKey}], stateDir: ${folder}/state, vars: { folder: ${folder}/www } }\n`;
      });
      for (const server of servers)
        writeFileSync(
          join(server.home("root"), ".ssh/authorized_keys"),
          execFileSync("ssh-keygen", ["-y", "-f", servers[0]?.identityFile ?? ""], { encoding: "utf8" }),
        );
      const head = "defaults: { user: root, roles: [web], vars: { site: www.example.net } }\n";
      world.commit({ "roster/nodes.yaml": `${head}nodes:\n${lines.join("")}` });
      const home = world.path("operator");
      mkdirSync(home, { mode: 0o700 });
      const kcore = (words: readonly string[], input = ""): string =>
        execFileSync(join(root, "bin/kcore"), [...words], {
          cwd: world.origin,
          env: { PATH: "/usr/bin:/bin", HOME: home },
          encoding: "utf8",
          stdio: ["pipe", "pipe", "ignore"],
          input,
        });
      const recipient = /age1\w+/.exec(kcore(["secrets", "keygen"]))?.[0] ?? "";
      kcore(["secrets", "recipients", "add", "ci", recipient]);
      kcore(["secrets", "set", "roster/nodes.yaml", "defaults.vars.token"], token);
      identity = readFileSync(join(home, ".config/kcore/age-identity.txt"), "utf8");
      ci = await open(world, { KCORE_SSH_KEY: key, KCORE_AGE_KEY: identity });
    });
    after(async () => {
      await ci?.close();
      for (const server of servers ?? []) await server.stop();
      await world?.remove();
    });

    const endOf = (ends: ReadonlyMap<string, JobEnd>, name: string): JobEnd => {
      const end = ends.get(name);
      if (!end) throw new Error(`the job ${name} did not run, but ${[...ends.keys()].join(", ")}`);
      return end;
    };
    const codesOf = (ends: ReadonlyMap<string, JobEnd>): Readonly<Record<string, number>> =>
      Object.fromEntries([...ends].map(([name, { code }]) => [name, code]));
    const logsOf = (ends: ReadonlyMap<string, JobEnd>): string =>
      [...ends].map(([name, { log }]) => `--- ${name}\n${log}`).join("\n");

    it("shows what a pull request would change, and changes nothing", async () => {
      const before = page("w1");
      const ends = await ci.pipeline("proposal", commitRelease());
      expect(codesOf(ends), logsOf(ends)).to.deep.equal({ check: 0, plan: 0 });
      const { summary, artifacts, artifact } = endOf(ends, "plan");
      expect(summary).to.contain("#### Would change").and.contain(`+www.example.net, release ${release}, from w1`);
      expect(artifacts).to.include.members(["report/plan.html", "report/plan.json", "report/plan.md"]);
      if (ci.name === "GitLab") expect(artifact("report/plan.xml")).to.match(/<testsuites [^>]*failures="0"/);
      expect(JSON.parse(artifact("report/plan.json"))).to.include({ dryRun: true, dirty: false, state: "done" });
      expect(page("w1")).to.equal(before);
    });

    it("deploys what was approved, archives the run, and shows no secret in logs or reports", async () => {
      const commit = commitRelease();
      const ends = await ci.pipeline("push", commit);
      expect(codesOf(ends), logsOf(ends)).to.deep.equal({ check: 0, plan: 0, deploy: 0 });
      for (const node of ["w1", "w2"])
        expect(page(node)).to.equal(`www.example.net, release ${release}, from ${node}\n`);
      expect(readFileSync(file("w1", ".token"), "utf8")).to.equal(`${token}\n`);
      const { artifacts, artifact, summary } = endOf(ends, "deploy");
      expect(artifacts).to.include.members(["report/deploy.html", "report/deploy.md", "report/deploy.tar.gz"]);
      expect(artifact("report/deploy.md")).to.contain("#### Changed").and.contain(commit.slice(0, 12));
      if (ci.name === "GitHub") expect(summary).to.equal(artifact("report/deploy.md"));
      const outputs = [...ends.values()].flatMap((end) => [
        end.log,
        end.summary,
        ...end.artifacts.filter((name) => /\.\w+$/.test(name)).map((name) => end.artifact(name)),
      ]);
      for (const secret of [token, identity.split("\n").at(-2) ?? "", "OPENSSH PRIVATE KEY"])
        expect(outputs.filter((text) => text.includes(secret))).to.deep.equal([]);
    });

    it("installs kcore once and takes it from the cache afterwards", () => {
      expect(world.installs).to.equal(1);
    });

    it("leaves no key that others may read", () => {
      const homes = readdirSync(world.path("jobs"))
        .map((name) => world.path("jobs", name, "home"))
        .filter((home) => existsSync(join(home, ".ssh")));
      expect(homes.length).to.be.greaterThan(2);
      const modes = execFileSync("find", [...homes, "-type", "f", "-perm", "/077"], { encoding: "utf8" });
      expect(modes).to.equal("");
    });
  });
