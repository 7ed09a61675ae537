import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { parseRecording } from "#engine/events/recording.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { listRunIds, runFolder } from "#engine/run/run-folder.ts";
import { writeFarmProject } from "#support/farm-project.ts";
import { TestProject } from "#support/kcore.ts";
import { startFarm, type NodeFarm } from "#support/node-farm.ts";

describe("A run over fifty simulated nodes", () => {
  let farm: NodeFarm;
  let project: TestProject;
  before(async () => {
    farm = await startFarm(50, { pace: 10, failEvery: 25 });
    project = new TestProject();
    writeFarmProject(project.project, farm, 12);
  });
  after(async () => {
    await project?.remove();
    await farm?.stop();
  });
  const apply = (...words: readonly string[]) =>
    project.kcore("state", "apply", "fleet", "--on", "n*", "--output", "json", ...words);
  const newest = async () => {
    const folder = runFolder(project.project, (await listRunIds(project.project)).at(-1) ?? "");
    return reduceEvents(parseRecording(readFileSync(folder.events)).events);
  };
  const outcomesOf = ({ nodes }: Awaited<ReturnType<typeof newest>>, name: string) =>
    nodes.get(name)?.steps.map(({ outcome }) => outcome);

  it("changes nothing in a dry run, and sees everything that differs", async () => {
    const ended = await apply("--dry-run");
    expect(ended.code, ended.stderr).to.equal(0);
    expect(new Set(outcomesOf(await newest(), "n01"))).to.deep.equal(new Set(["would-change"]));
  });

  it("takes every node through all steps, but those that fail", async () => {
    const ended = await apply("--report", "fifty.html");
    expect(ended.code, ended.stderr).to.equal(1);
    const model = await newest();
    const nodes = [...model.nodes.values()];
    expect(nodes.filter(({ outcome }) => outcome === "done")).to.have.length(48);
    expect(nodes.filter(({ outcome }) => outcome === "failed").map(({ name }) => name)).to.deep.equal(["n25", "n50"]);
    expect(outcomesOf(model, "n01")).to.deep.equal(Array<string>(12).fill("changed"));
    expect(readFileSync(join(project.project, "fifty.html"), "utf8")).to.include("2 nodes failed the same way");
  });

  it("finds all of it in order the second time", async () => {
    await apply();
    expect(outcomesOf(await newest(), "n01")).to.deep.equal(Array<string>(12).fill("ok"));
  });
});
