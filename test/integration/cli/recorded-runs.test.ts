import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { formatEvent } from "#engine/events/recording.ts";
import { createRun, type RunFolder } from "#engine/run/run-folder.ts";
import { lastDryRun } from "#cli/watch/last-dry-run.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { runsOfNode } from "#cli/top/runs-of-node.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runRequest } from "#support/runs.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { wideRun } from "#support/wide-run.ts";

/** Creates the record of a run with these events. */
async function record(
  project: string,
  events: readonly RunEvent[],
  {
    created = Date.now(),
    revision = "one",
    ...request
  }: Parameters<typeof runRequest>[0] & { created?: number; revision?: string } = {},
): Promise<RunFolder> {
  const made = { project, who: "op@bastion", created, attended: false, revision };
  const { folder } = await createRun({ ...made, request: runRequest(request) });
  writeFileSync(folder.events, events.map(formatEvent).join(""));
  return folder;
}

describe("the runs of a node as kcore top lists them", () => {
  let dir: TempDir;
  before(async () => (dir = await makeTempDir("runs-of-node")));
  after(() => dir.remove());

  it("are the newest five, each with the last milestone that this node reached", async () => {
    const command = "kcore orchestrate deploy_node";
    const recordAt = async (events: readonly RunEvent[], created: number): Promise<string> =>
      (await record(dir.path, events, { command, created })).id;
    const run = recordedRun("done");
    const last = run.at(-1) as RunEvent;
    const mile = (node: string, milestone: string, by: number) =>
      ({ type: "node.milestone", node, milestone, at: last.at, seq: last.seq + by - 3 }) as RunEvent;
    const reached = [
      ...run.slice(0, -1),
      mile("n1", "Disks", 1),
      mile("n1", "Member", 2),
      mile("n2", "Ready", 3),
      last,
    ];
    const other = await recordAt(wideRun({ nodes: 2, steps: 2 }), Date.now() - 9000);
    const ids = [];
    for (let index = 0; index < 6; index++)
      ids.push(await recordAt(index === 5 ? reached : run, Date.now() - 8000 + index * 1000));
    const runs = await runsOfNode(dir.path, "n1");
    expect(runs.map(({ id }) => id)).to.deep.equal(ids.slice(1).reverse());
    expect(runs.map(({ id }) => id)).not.to.include(other);
    expect(runs[0]).to.include({ state: "done", milestone: "Member", command: "kcore orchestrate deploy_node" });
    expect(await runsOfNode(dir.path, "nobody")).to.deep.equal([]);
    expect(await runsOfNode("/nowhere", "n1")).to.deep.equal([]);
  });

  it("show the outcome for this node, not for another node of the run", async () => {
    const project = await makeTempDir("runs-of-node-apart");
    try {
      const [first, ...more] = wideRun({ nodes: 2, steps: 2 });
      const finished = (node: string, outcome: "done" | "failed") =>
        ({ type: "node.finished", node, outcome, at: 1, seq: 9000 }) as RunEvent;
      const last = { type: "run.finished", outcome: "failed", exitCode: 1, at: 2, seq: 9002 } as RunEvent;
      const nodes = first?.type === "run.started" ? first.nodes : [];
      const [well = "", sick = ""] = nodes;
      const kept = more.filter(({ type }) => type !== "run.finished" && type !== "node.finished");
      const events = [first as RunEvent, ...kept, finished(well, "done"), finished(sick, "failed"), last];
      await record(project.path, events);
      const states = await Promise.all(
        [well, sick].map(async (node) => (await runsOfNode(project.path, node))[0]?.state),
      );
      expect(states).to.deep.equal(["done", "failed"]);
    } finally {
      await project.remove();
    }
  });
});

describe("the last dry run of a request", () => {
  let dir: TempDir;
  let created = Date.UTC(2026, 10, 21);
  beforeEach(async () => (dir = await makeTempDir("last-dry-run")));
  afterEach(() => dir.remove());

  const next = (events: readonly RunEvent[], request: Parameters<typeof runRequest>[0], revision = "one") =>
    record(dir.path, events, { ...request, created: (created += 1000), revision });
  const dry = recordedRun("dry-run");
  const count = (outcome: string) =>
    dry.filter(
      (event) => /^(step|action)\.finished$/.test(event.type) && "outcome" in event && event.outcome === outcome,
    ).length;

  it("is the newest completed one with the same target and parameters", async () => {
    await next(dry, { dryRun: true, on: "n1" });
    await next(dry, { dryRun: true, on: "n1,n2", params: { size: "1" } });
    await next(dry.slice(0, -1), { dryRun: true, on: "n1" });
    await next(dry, { dryRun: false, on: "n1" });
    const found = await lastDryRun(await next([], { on: "n1" }));
    expect(found).to.deep.equal({
      at: Date.UTC(2026, 10, 21) + 1000,
      wouldChange: count("would-change"),
      unknown: count("unknown"),
      failed: count("failed"),
      isSame: true,
    });
    expect(count("would-change")).to.be.above(0);
  });

  it("is marked when the project has changed since; a request without a dry run, and a dry run itself, have none", async () => {
    await next(dry, { dryRun: true }, "two");
    expect(await lastDryRun(await next([], {}))).to.include({ isSame: false });
    expect(await lastDryRun(await next([], { on: "elsewhere" }))).to.equal(undefined);
    expect(await lastDryRun(await next([], { dryRun: true }))).to.equal(undefined);
  });
});
