import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { changeHeader, runFolder } from "#engine/run/run-folder.ts";
import { eventually } from "#support/cluster.ts";
import { TestProject } from "#support/kcore.ts";

const files = {
  "states/greeting.yaml": `description: A greeting in a file
params:
  path: { type: string, required: true }
  text: { type: string, default: hello }
steps:
  - id: greeting
    file.managed: { path: "{{params.path}}", content: "{{params.text}}\\n", mode: "0640" }
`,
  "states/loud.yaml": `params:
  path: { type: string, required: true }
steps:
${[1, 2, 3].map((part) => `  - id: loud ${part}\n    command.run: { cmd: "head -c 200000 /dev/zero | tr '\\\\0' x; echo ${part}" }`).join("\n")}
`,
  "states/slow.yaml": `params:
  path: { type: string, required: true }
steps:
  - id: slow
    command.run: { cmd: "touch {{params.path}}.begun; while [ -e {{params.path}}.begun ]; do sleep 0.1; done; echo once >>{{params.path}}" }
  - id: after
    command.run: { cmd: "echo after >>{{params.path}}" }
`,
};

describe("a run from the command line", () => {
  let project: TestProject;
  let target: string;
  beforeEach(() => {
    project = new TestProject(files);
    target = join(project.path, "written");
  });
  afterEach(() => project.remove());
  const apply = (state: string, ...more: string[]) => [
    ..."state apply".split(" "),
    state,
    "--on",
    "here",
    "--set",
    `path=${target}`,
    ...more,
  ];
  /** Waits until the slow step has begun. */
  const slowBegan = () => eventually(() => existsSync(`${target}.begun`));
  const endSlow = () => rmSync(`${target}.begun`);

  it("applies a state, finds it in order the second time, and records both runs", async () => {
    const dry = await project.kcore(...apply("greeting", "--dry-run"));
    expect(dry.stdout).to.contain("1 to change on 1 node");
    expect(existsSync(target)).to.equal(false);
    const first = await project.kcore(...apply("greeting"));
    expect(first.stderr).to.equal("");
    expect(first.stdout).to.match(/^Steps: 1 succeeded \(changed=1\), 0 failed$/m);
    expect(first.code).to.equal(0);
    expect(readFileSync(target, "utf8")).to.equal("hello\n");
    const second = await project.kcore(...apply("greeting", "--verbose"));
    expect(second.stdout).to.match(/^Steps: 1 succeeded \(changed=0\), 0 failed$/m);
    const listed = JSON.parse((await project.kcore("runs", "list", "-o", "json")).stdout) as { state: string }[];
    expect(listed.map(({ state }) => state)).to.deep.equal(["done", "done", "done"]);
    const shown = await project.kcore("runs", "show", "last", "--events");
    expect(shown.stdout).to.equal(second.stdout);
  });

  it("exits 1 when a node failed and 3 when nodes were only unreachable (F-14)", async () => {
    project.write({ "project/states/false.yaml": "steps:\n  - id: fails\n    command.run: { cmd: 'false' }\n" });
    const failed = await project.kcore("state", "apply", "false", "--on", "here");
    expect(failed.code).to.equal(1);
    expect(failed.stdout).to.contain("The first cause of each failure:\n  here  ");
    expect(failed.stdout).to.match(/log: .*nodes\/here\.log/);
    const unreachable = await project.kcore("ping", "--on", "gone");
    expect(unreachable.code).to.equal(3);
    expect(unreachable.stdout).to.contain("gone  unreachable");
  });

  it("stops before the next step at the first Ctrl-C and exits 130 (F-17)", async () => {
    const { child, ended } = project.start(apply("slow"));
    await project.driver();
    await slowBegan();
    let shown = "";
    child.stderr?.on("data", (text: string) => (shown += text));
    child.kill("SIGINT");
    await eventually(() => shown.includes("no new step starts"));
    endSlow();
    const { code, stdout } = await ended;
    expect(code).to.equal(130);
    expect(stdout).to.contain("kcore runs resume");
    expect(readFileSync(target, "utf8")).to.equal("once\n");
  });

  it("continues when the terminal of its view is closed, and can be attached to (F-17)", async () => {
    await project.kcore(...apply("slow"), "--detach");
    await slowBegan();
    const { child, ended } = project.start(["runs", "attach", "last"]);
    await once(child.stdout as NodeJS.ReadableStream, "data");
    child.kill("SIGHUP");
    expect((await ended).stderr).to.contain("The run goes on");
    endSlow();
    const attached = await project.kcore("runs", "attach", "last");
    expect(attached.code).to.equal(0);
    expect(attached.stdout).to.contain("here  after  ran");
    expect(readFileSync(target, "utf8")).to.equal("once\nafter\n");
  });

  it("without a terminal is driven by the command's own process, which continues without its view after SIGHUP", async () => {
    const { child, ended } = project.start(apply("slow"));
    expect(await project.driver()).to.equal(child.pid);
    await slowBegan();
    let shown = "";
    child.stderr?.on("data", (text: string) => (shown += text));
    child.kill("SIGHUP");
    await eventually(() => shown.includes("The run goes on"));
    endSlow();
    expect((await ended).code).to.equal(0);
    expect(readFileSync(target, "utf8")).to.equal("once\nafter\n");
    expect((await project.kcore("runs", "show", "last")).stdout).to.contain("done");
  });

  it("continues when the reader of its output closes the pipe", async () => {
    const { child, ended } = project.start(apply("slow"));
    await once(child.stdout as NodeJS.ReadableStream, "data");
    child.stdout?.destroy();
    await slowBegan();
    endSlow();
    expect(await ended).to.deep.include({ code: 0 });
    expect(readFileSync(target, "utf8")).to.equal("once\nafter\n");
  });

  it("continues when its output cannot be written", async () => {
    const full = openSync("/dev/full", "w");
    const { ended } = project.start(apply("slow"), {}, full);
    closeSync(full);
    await slowBegan();
    endSlow();
    expect(await ended).to.deep.include({ code: 0 });
    expect(readFileSync(target, "utf8")).to.equal("once\nafter\n");
  });

  it("delivers all of its output to a slow reader", async () => {
    const { child, ended } = project.start(apply("loud", "--output", "json"));
    child.stdout?.pause();
    await eventually(async () => (await project.kcore("runs", "list", "-o", "json")).stdout.includes('"done"'));
    child.stdout?.resume();
    const { stdout } = await ended;
    expect(stdout.length).to.be.above(400_000);
    expect(stdout.trim().split("\n").at(-1)).to.contain('"run.finished"');
  });

  it("resumes after its process was killed, without repeating the completed step (F-3)", async () => {
    const { child, ended } = project.start(apply("slow"));
    await slowBegan();
    const attached = project.start(["runs", "attach", "last"]);
    await once(attached.child.stdout as NodeJS.ReadableStream, "data");
    child.kill("SIGKILL");
    const killed = await attached.ended;
    await ended;
    endSlow();
    expect(killed.stderr).to.contain("[RUN_DIED]").and.to.contain("kcore runs resume");
    const resumed = await project.kcore("runs", "resume", "last");
    expect(resumed.stderr).to.equal("");
    expect(resumed.code).to.equal(0);
    expect(readFileSync(target, "utf8")).to.equal("once\nafter\n");
    const again = await project.kcore("runs", "resume", "last");
    expect(again.code).to.equal(2);
    expect(again.stderr).to.contain("[RUN_FINISHED]");
  });

  it("is not resumed when the project's files have changed, and names the files and the next command", async () => {
    const state = (version: number, b: string) => `steps:
  - id: a
    file.managed: { path: ${target}.a, content: "version ${version}" }
  - id: b
    command.run: { cmd: "${b}" }
  - id: c
    file.managed: { path: ${target}.c, content: "version ${version}" }
`;
    const words = ["state", "apply", "parts", "--on", "here"];
    project.write({ "project/states/parts.yaml": state(1, "false") });
    const failed = await project.kcore(...words);
    expect(failed.code).to.equal(1);
    expect(failed.stdout).to.match(/Next:\n {2}kcore state apply parts --on here +when the project is mended\n/);
    project.write({ "project/states/parts.yaml": state(2, "true"), "project/states/new.yaml": "steps: []\n" });
    const resumed = await project.kcore("runs", "resume", "last");
    expect([resumed.code, resumed.stdout]).to.deep.equal([2, ""]);
    expect(resumed.stderr).to.contain("began with: states/new.yaml, states/parts.yaml  [RUN_OUTDATED]");
    expect(resumed.stderr).to.contain("begin anew, what is in order is left alone: kcore state apply parts --on here");
    expect([readFileSync(`${target}.a`, "utf8"), existsSync(`${target}.c`)]).to.deep.equal(["version 1", false]);
    rmSync(join(project.project, "states/new.yaml"));
    project.write({ "project/states/parts.yaml": state(1, "false"), "project/configs/a": "a source may lie anywhere" });
    expect((await project.kcore("runs", "resume", "last")).stderr).to.contain("began with: configs/a  [RUN_OUTDATED]");
    rmSync(join(project.project, "configs"), { recursive: true });
    project.write({ "project/states/parts.yaml": state(1, "false") });
    // “last” names the last run that can be resumed: neither a dry run nor a single command.
    await project.kcore(...words, "--dry-run");
    await project.kcore("exec", "--lock", "--on", "here", "--", "true");
    expect((await project.kcore("runs", "resume", "last")).code).to.equal(1);
  });

  it("fails a question at once when it is resumed without a terminal", async () => {
    project.write({
      "project/orchestrate/ask.yaml": `params:
  node_name: { type: target, required: true }
stages:
  - { id: sure, run: confirm, message: "Really go on?" }
  - { id: work, on: "{{params.node_name}}", apply: [slow], with: { path: ${target} } }
`,
    });
    const first = await project.kcore("orchestrate", "ask", "here");
    expect(first.code, first.stdout).to.equal(1);
    const [id = ""] = readdirSync(join(project.project, ".kcore/runs"));
    changeHeader(runFolder(project.project, id), { attended: true });
    const resumed = await project.kcore("runs", "resume", "last");
    expect([resumed.code, resumed.stdout]).to.deep.include(1);
    expect(resumed.stdout).to.contain("[QUESTION_UNANSWERED]");
  });

  it("keeps the passphrase out of the environment of its processes (S-7)", async () => {
    const { child, ended } = project.start(apply("slow"), { KCORE_CA_PASSPHRASE: "a canary that must not sing" });
    const driver = await project.driver();
    const view = readFileSync(`/proc/${child.pid}/environ`, "utf8");
    const run = readFileSync(`/proc/${driver}/environ`, "utf8");
    await slowBegan();
    endSlow();
    await ended;
    expect(view + run).to.not.contain("canary");
    expect(view).to.contain("KCORE_PASSPHRASE_FD=");
  });
});
