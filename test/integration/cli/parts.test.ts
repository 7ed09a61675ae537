import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { kcoreProgram } from "#support/deploy.ts";
import { TestProject } from "#support/kcore.ts";
import { startTargets, type Targets } from "#support/targets.ts";

/** Two machines (real sshds, one file system), each with files below `{{vars.dir}}`. */
describe("a part of a run from the command line", () => {
  let targets: Targets;
  let project: TestProject;
  before(async () => (targets = await startTargets(2)));
  after(() => targets.stop());

  beforeEach(() => {
    project = new TestProject();
    const { path } = project;
    const { port, identityFile, hostKey } = targets;
    const nodes = targets.addresses.map(
      (address, index) =>
        `  n${index + 1}: { address: ${address}, hostKeys: ["${hostKey}"], stateDir: ${path}/state${index + 1}, vars: { dir: ${path}/n${index + 1}, word: one } }\n`,
    );
    const state = `steps:
  - { id: folder, directory.managed: { path: "{{vars.dir}}" }, tags: base }
  - { id: config, file.managed: { path: "{{vars.dir}}/config", content: "{{vars.word}}" } }
  - { id: reload, command.run: { cmd: "echo reloaded >>{{shell vars.dir}}/log" }, onChanges: [config] }
  - { id: motd, file.managed: { path: "{{vars.dir}}/motd", content: hello } }
`;
    project.write({
      "project/roster/nodes.yaml": `defaults: { port: ${port}, identityFile: ${identityFile} }\nnodes:\n${nodes.join("")}`,
      "project/states/web.yaml": state,
      "project/states/token.yaml": `steps:
  - { id: folder, directory.managed: { path: "{{vars.dir}}" } }
  - { id: token, command.run: { cmd: "echo {{shell node.name}} token", check: true }, register: token }
`,
      "project/states/agent.yaml": `params: { servers: { type: map, required: true } }
steps:
  - { id: members, file.managed: { path: "{{vars.dir}}/members", content: "{{#each params.servers}}{{@key}}={{token.stdout}};{{/each}}" } }
`,
      "project/orchestrate/join.yaml": `stages:
  - { id: server, on: "n1,n2", apply: [token] }
  - { id: agent, on: n2, apply: [agent], with: { servers: "{{stages.server.nodes}}" } }
`,
    });
  });
  afterEach(() => project.remove());

  const at = (name: string): string => join(project.path, name);
  const done = async (...words: string[]): Promise<string> => {
    const { code, stdout, stderr } = await project.kcore(...words);
    expect(code, stdout + stderr).to.equal(0);
    return stdout;
  };
  const web = ["state", "apply", "web", "--on", "n1,n2"];
  const shown = async (): Promise<{ title: string; leftOut?: object; nodes: { name: string }[] }> =>
    JSON.parse(await done("runs", "show", "last", "-o", "json")) as Awaited<ReturnType<typeof shown>>;

  it("does only that part, tells what it left out, and leaves a reaction owed to the next whole run", async () => {
    await done(...web);
    const log = readFileSync(at("n1/log"), "utf8");
    for (const node of ["n1", "n2"])
      for (const file of ["config", "motd"]) writeFileSync(at(`${node}/${file}`), "by hand");
    const text = await done(...web, "--limit", "n1", "--only", "folder", "--only", "config");
    expect(readFileSync(at("n1/config"), "utf8")).to.equal("one");
    expect([readFileSync(at("n1/motd"), "utf8"), readFileSync(at("n2/config"), "utf8")]).to.deep.equal(
      Array(2).fill("by hand"),
    );
    expect(text).to.contain("state apply web (in part: --only folder --only config --limit n1)  done after");
    expect(text.match(/^Left out by .*: 2 steps \(web: reload, web: motd\); node n2$/gm)).to.have.length(1);
    const { leftOut, nodes } = await shown();
    expect([nodes.length, leftOut])
      .to.deep.include(1)
      .and.to.deep.include({
        by: "--only folder --only config --limit n1",
        stages: [],
        steps: ["web: reload", "web: motd"],
        nodes: ["n2"],
      });
    expect(readFileSync(at("n1/log"), "utf8"), "the reaction is left out").to.equal(log);
    const whole = await done(...web, "--verbose");
    expect(whole).to.contain("a reaction owed since an earlier run").and.to.not.contain("no longer managed");
    expect(readFileSync(at("n1/log"), "utf8")).to.equal(`${log}reloaded\n`);
  });

  it("refuses a part that needs what it leaves out, before it connects", async () => {
    const { code, stderr } = await project.kcore(...web, "--only", "reload");
    expect([code, stderr], stderr).to.satisfy(
      ([end, text]: [number, string]) => end === 2 && /“reload” needs “config”/.test(text),
    );
    const agent = await project.kcore("orchestrate", "join", "--only", "agent");
    expect(agent.stderr).to.contain("stage “agent” needs the outputs of stage “server”, which --only agent leaves out");
    expect(existsSync(at("n1"))).to.equal(false);
  });

  it("passes values of all nodes to another one, and shows a node's steps and the times", async () => {
    await done("orchestrate", "join", "--batch", "1");
    expect(readFileSync(at("n2/members"), "utf8")).to.equal("n1=n1 token;n2=n2 token;");
    const node = await done("runs", "show", "last", "--node", "n2");
    expect(node)
      .to.match(/^n2 {2}done after .*\(run .*: join\)$/m)
      .and.match(/^changed .* agent: members {2}\(file\.managed\)$/m);
    expect(node).to.contain("| n2 token");
    const steps = JSON.parse(await done("runs", "show", "last", "--times", "-o", "json")) as {
      steps: { share: number }[];
    };
    expect(steps.steps.reduce((sum, { share }) => sum + share, 0)).to.be.closeTo(1, 0.001);
    expect(await done("runs", "show", "last", "--times", "--node", "n1")).to.match(/^server: token +command\.run +1 /m);
    expect((await project.kcore("runs", "show", "last", "--node", "n9")).stderr).to.contain("has no node “n9”");
  });

  it("holds a plan to its part, and changes a variable of the roster for one run", async () => {
    const part = [...web, "--tags", "base"];
    const git = (...words: string[]): unknown =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", "-C", project.project, ...words]);
    project.write({ "project/.gitignore": ".kcore/\nplan.json\n" });
    for (const words of ["init --quiet", "add --all", "commit --quiet --message one"]) git(...words.split(" "));
    await done(...part, "--dry-run", "--report", "plan.json");
    const { code, stderr } = await project.kcore(...web, "--plan", "plan.json");
    expect([code, stderr], stderr).to.satisfy(
      ([end, text]: [number, string]) => end === 2 && /it is a plan for “.*--tags base\)”/.test(text),
    );
    await done(...part, "--plan", "plan.json");
    expect([existsSync(at("n1")), existsSync(at("n1/config"))]).to.deep.equal([true, false]);
    await done(...web);
    const show = await done("state", "show", "web", "--on", "n2", "--set", "word=two");
    expect(show)
      .to.match(/^# n2$/m)
      .and.contain("content: two")
      .and.contain(`path: ${at("n2")}/config`);
    expect(await done(...web, "--dry-run", "--set", "word=two", "--only", "folder", "--only", "config")).to.contain(
      "2 to change on 2 nodes",
    );
    expect(await done(...part, "--dry-run")).to.contain("nothing to change");
    expect((await shown()).title).to.equal("state apply web (in part: --tags base)");
  });

  it("asks for a parameter at a terminal; a resumed run keeps the answer, and without a terminal names the flag", async () => {
    project.write({
      "project/states/ask.yaml": `params: { word: { type: string, prompt: Which word }, key: { type: secret, prompt: The key } }
steps:
  - { id: word, file.managed: { path: "${at("word")}", content: "{{params.word}}" } }
  - { id: gate, command.run: { cmd: "test -e ${at("gate")}" } }
  - { id: key, file.managed: { path: "${at("secret")}", content: "{{params.key}}" }, sensitive: true }
  - { id: again, file.managed: { path: "${at("again")}", content: "{{params.word}}" } }
`,
    });
    const { code, stderr } = await project.kcore("state", "apply", "ask", "--on", "n1", "--set", "key=env:HOME");
    expect([code, stderr.includes("give --set word=VALUE")], stderr).to.deep.equal([2, true]);
    rmSync(at("gate"), { force: true });
    await project.atTerminal(async (shell) => {
      await shell.enter(`'${kcoreProgram}' state apply ask --on n1 --output plain`);
      await shell.shows(/^Which word:/m);
      await shell.enter("typed");
      await shell.shows(/^The key:/m);
      await shell.enter("s3cret-key");
      const end = await shell.shows(/failed after/);
      expect(end).to.not.contain("s3cret-key");
      writeFileSync(at("gate"), "");
      await shell.wipe();
      await shell.enter(`'${kcoreProgram}' runs resume last --output plain`);
      await shell.shows(/^The key:/m);
      await shell.enter("s3cret-key");
      await shell.shows(/done after/);
    });
    expect(readFileSync(at("again"), "utf8")).to.equal("typed");
    expect(readFileSync(at("secret"), "utf8")).to.equal("s3cret-key");
    expect(
      readFileSync(
        join(
          project.project,
          ".kcore/runs",
          (await done("runs", "list", "-o", "json")).match(/\d{8}-\d{6}-\w{4}/g)?.at(-1) ?? "",
          "run.json",
        ),
        "utf8",
      ),
    )
      .to.contain('"word": "typed"')
      .and.not.contain("s3cret");
  });
});
