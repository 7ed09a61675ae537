import { expect } from "chai";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { QueueWorld } from "#support/queue-world.ts";

describe("a run over a queue", () => {
  let world: QueueWorld;
  before(async () => {
    world = await QueueWorld.start(4);
  });
  after(() => world?.stop());
  const out = (name: string): string => join(world.project.path, "out", name);

  it("hands nodes to the workers that reach them, and keeps one record", async () => {
    world.project.write({
      "project/states/site.yaml": `params:
  word: { type: string, default: hello }
steps:
  - id: root
    directory.managed: { path: "${out("")}" }
  - id: folder
    directory.managed: { path: "${out("")}/{{ node.name }}" }
  - id: file
    file.managed: { path: "${out("")}/{{ node.name }}/motd", content: "{{ params.word }} {{ node.name }}" }
`,
    });
    const workers = await Promise.all([world.worker("w1", "--dc", "DC1"), world.worker("w2", "--dc", "DC2")]);
    const end = await world.run("state", "apply", "site", "--on", "*");
    expect(end.code, end.stdout + end.stderr + workers.map(({ text }) => text()).join("\n")).to.equal(0);
    for (const name of ["t1", "t2", "t3", "t4"])
      expect(readFileSync(out(`${name}/motd`), "utf8")).to.equal(`hello ${name}`);
    const done = end.events.flatMap((event) => (event.type === "step.finished" ? [event.outcome] : []));
    expect(done).to.deep.equal(Array.from({ length: 12 }, () => "changed"));
    expect(workers[0].text()).to.match(/: t1\n/).and.to.match(/: t3\n/).and.not.match(/: t2\n/);
    const again = await world.run("state", "apply", "site", "--on", "*");
    expect(again.events.flatMap((event) => (event.type === "step.finished" ? [event.outcome] : []))).to.deep.equal(
      Array.from({ length: 12 }, () => "ok"),
    );
    expect(existsSync(out("t1"))).to.equal(true);
    for (const worker of workers) await worker.stop();
  });
});
