import { expect } from "chai";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "#support/cluster.ts";
import { QueueWorld } from "#support/queue-world.ts";

describe("a run over a queue", () => {
  let world: QueueWorld;
  before(async () => {
    world = await QueueWorld.start(4);
  });
  after(() => world?.stop());
  beforeEach(() => mkdirSync(out(""), { recursive: true }));
  afterEach(async () => {
    await world.stopWorkers();
    rmSync(out(""), { recursive: true, force: true });
  });
  const out = (name: string): string => join(world.project.path, "out", name);
  const writeSite = (): void =>
    world.project.write({
      "project/states/site.yaml": `steps:
  - id: folder
    directory.managed: { path: "${out("")}/{{ node.name }}" }
  - id: file
    file.managed: { path: "${out("")}/{{ node.name }}/motd", content: "hello {{ node.name }}" }
`,
    });
  /** A step that takes some seconds and writes a line, and one that follows. */
  const writeSlow = (seconds: number): void =>
    world.project.write({
      "project/states/slow.yaml": `steps:
  - id: slow
    command.run: { cmd: "echo begun >>${out("")}/{{ node.name }}; sleep ${seconds}; echo ended >>${out("")}/{{ node.name }}" }
  - id: next
    command.run: { cmd: "echo next >>${out("")}/{{ node.name }}" }
`,
    });
  const lines = (name: string): readonly string[] => {
    try {
      return readFileSync(out(name), "utf8").trimEnd().split("\n");
    } catch {
      return [];
    }
  };
  const whole = ["begun", "ended", "next"];
  const outcomes = (events: Awaited<ReturnType<QueueWorld["run"]>>["events"]): readonly string[] =>
    events.flatMap((event) =>
      event.type === "step.finished" ? [`${event.node} ${event.title} ${event.outcome}`] : [],
    );

  it("hands nodes to the workers that reach them, and keeps one record", async () => {
    writeSite();
    const workers = await Promise.all([world.worker("w1", {}, "--dc", "DC1"), world.worker("w2", {}, "--dc", "DC2")]);
    const end = await world.run(["state", "apply", "site", "--on", "*"]);
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    for (const name of ["t1", "t2", "t3", "t4"]) expect(lines(`${name}/motd`)).to.deep.equal([`hello ${name}`]);
    expect(outcomes(end.events)).to.have.lengthOf(8);
    expect(workers[0].text())
      .to.match(/: t1\n/)
      .and.to.match(/: t3\n/)
      .and.not.match(/: t2\n/);
    const again = await world.run(["state", "apply", "site", "--on", "*"]);
    expect(outcomes(again.events).every((text) => text.endsWith(" ok"))).to.equal(true);
  });

  it("carries values between stages and secrets to nodes, and Redis has none of them", async () => {
    world.project.write({
      "project/states/first.yaml": `steps:
  - id: made
    register: made
    command.run: { cmd: "echo value-of-{{ node.name }}" }
`,
      "project/states/second.yaml": `params:
  word: { type: string, required: true }
  token: { type: secret, required: true }
steps:
  - id: file
    file.managed: { path: "${out("")}/{{ node.name }}/file", content: "{{ params.word }} {{ params.token }}", sensitive: true }
`,
      "project/orchestrate/both.yaml": `params:
  nodes: { type: target, required: true }
stages:
  - { id: first, on: "{{params.nodes}}", apply: [first] }
  - { id: meanwhile, run: local.command, command: ["true"] }
  - { id: second, on: "{{params.nodes}}", apply: [second], with: { word: "{{stages.first.made.stdout}}", token: { env: TOKEN } } }
`,
    });
    for (const name of ["t1", "t2"]) mkdirSync(out(name));
    const run = (token: string) => world.run(["orchestrate", "both", "t1,t2"], { TOKEN: token });
    const poor = await world.worker("w1");
    const refused = await run("token-of-all");
    expect([refused.code, lines("t1/file")]).to.deep.equal([1, []]);
    expect(refused.stdout).to.include("TOKEN");
    poor.child.kill("SIGINT");
    await eventually(() => poor.child.exitCode !== null);
    await world.worker("w2", { TOKEN: "token-of-all" });
    const end = await run("token-of-all");
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    expect(lines("t1/file")).to.deep.equal(["value-of-t1 token-of-all"]);
    expect(lines("t2/file")).to.deep.equal(["value-of-t2 token-of-all"]);
    const kept = join(world.redis.folder, "appendonlydir");
    const bytes = readdirSync(kept).map((name) => readFileSync(join(kept, name), "latin1"));
    const runs = join(world.project.project, ".kcore/runs");
    const nonces = readdirSync(runs).map(
      (id) => (JSON.parse(readFileSync(join(runs, id, "run.json"), "utf8")) as { nonce: string }).nonce,
    );
    for (const hidden of ["token-of-all", "value-of-t1", "both.yaml", ...nonces])
      expect(
        bytes.some((text) => text.includes(hidden)),
        hidden,
      ).to.equal(false);
    expect(end.stdout).to.not.include("token-of-all");
  });

  it("goes on at another worker when one is killed and one stands still, and no step begins twice", async () => {
    writeSlow(3);
    const [killed, stopped] = [
      await world.worker("w1", {}, "--concurrency", "1"),
      await world.worker("w2", {}, "--concurrency", "1"),
    ];
    const run = world.run(["state", "apply", "slow", "--on", "t1,t2"]);
    await eventually(() => lines("t1").length > 0 && lines("t2").length > 0);
    killed.child.kill("SIGKILL");
    stopped.child.kill("SIGSTOP");
    await world.worker("w1");
    const end = await run;
    stopped.child.kill("SIGCONT");
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    expect([lines("t1"), lines("t2")]).to.deep.equal([whole, whole]);
    expect(outcomes(end.events).toSorted()).to.deep.equal([
      "t1 next changed",
      "t1 slow changed",
      "t2 next changed",
      "t2 slow changed",
    ]);
  });

  it("goes on with another coordinator when the first one is killed", async () => {
    writeSlow(3);
    await world.worker("w1");
    const { child, ended } = world.start("state", "apply", "slow", "--on", "t1,t2");
    await eventually(() => lines("t1").length > 0 && lines("t2").length > 0);
    child.kill("SIGKILL");
    await ended;
    const [id = ""] = readdirSync(join(world.project.project, ".kcore/runs")).toSorted().slice(-1);
    const end = await world.run(["runs", "resume", id]);
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    expect([lines("t1"), lines("t2")]).to.deep.equal([whole, whole]);
  });

  it("goes on when Redis was killed and started again", async () => {
    writeSlow(3);
    await world.worker("w1");
    const run = world.run(["state", "apply", "slow", "--on", "t1,t2"]);
    await eventually(() => lines("t1").length > 0 && lines("t2").length > 0);
    await world.redis.kill();
    await world.redis.start();
    const end = await run;
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    expect([lines("t1"), lines("t2")]).to.deep.equal([whole, whole]);
  });

  it("stops at Ctrl-C: the running steps end, no further one begins", async () => {
    writeSlow(2);
    await world.worker("w1");
    const { child, ended } = world.start("state", "apply", "slow", "--on", "t1,t2");
    await eventually(() => lines("t1").length > 0 && lines("t2").length > 0);
    child.kill("SIGINT");
    expect((await ended).code).to.equal(130);
    expect([lines("t1"), lines("t2")]).to.deep.equal([
      ["begun", "ended"],
      ["begun", "ended"],
    ]);
  });

  it("tells which node no worker takes, and goes on once one comes", async () => {
    writeSite();
    await world.worker("w1", {}, "--dc", "DC1");
    const { child, ended } = world.start("state", "apply", "site", "--on", "t2");
    let text = "";
    child.stdout?.on("data", (more: string) => (text += more));
    await eventually(() => text.includes("no worker takes t2 (datacenter DC2)"));
    await world.worker("w2", {}, "--dc", "DC2");
    expect((await ended).code).to.equal(0);
  });
});
