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
    const workers = await Promise.all([world.worker("w1", "--dc", "DC1"), world.worker("w2", "--dc", "DC2")]);
    const end = await world.run("state", "apply", "site", "--on", "*");
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    for (const name of ["t1", "t2", "t3", "t4"]) expect(lines(`${name}/motd`)).to.deep.equal([`hello ${name}`]);
    expect(outcomes(end.events)).to.have.lengthOf(8);
    expect(workers[0].text())
      .to.match(/: t1\n/)
      .and.to.match(/: t3\n/)
      .and.not.match(/: t2\n/);
    const again = await world.run("state", "apply", "site", "--on", "*");
    expect(outcomes(again.events).every((text) => text.endsWith(" ok"))).to.equal(true);
  });

  it("goes on at another worker when one is killed and one stands still, and no step begins twice", async () => {
    writeSlow(3);
    const [killed, stopped] = [
      await world.worker("w1", "--concurrency", "1"),
      await world.worker("w2", "--concurrency", "1"),
    ];
    const run = world.run("state", "apply", "slow", "--on", "t1,t2");
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
    const end = await world.run("runs", "resume", id);
    expect(end.code, end.stdout + end.stderr).to.equal(0);
    expect([lines("t1"), lines("t2")]).to.deep.equal([whole, whole]);
  });

  it("goes on when Redis was killed and started again", async () => {
    writeSlow(3);
    await world.worker("w1");
    const run = world.run("state", "apply", "slow", "--on", "t1,t2");
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
    await world.worker("w1", "--dc", "DC1");
    const { child, ended } = world.start("state", "apply", "site", "--on", "t2");
    let text = "";
    child.stdout?.on("data", (more: string) => (text += more));
    await eventually(() => text.includes("no worker takes t2 (datacenter DC2)"));
    await world.worker("w2", "--dc", "DC2");
    expect((await ended).code).to.equal(0);
  });
});
