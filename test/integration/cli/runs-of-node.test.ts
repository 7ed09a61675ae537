import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { formatEvent } from "#engine/events/recording.ts";
import { createRun } from "#engine/run/run-folder.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { runsOfNode } from "#cli/top/runs-of-node.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { runRequest } from "#support/runs.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { wideRun } from "#support/wide-run.ts";

describe("The runs on a node, as kcore top tells them", () => {
  let dir: TempDir;
  before(async () => (dir = await makeTempDir("runs-of-node")));
  after(() => dir.remove());

  it("are the newest five, each with the last milestone that this node reached", async () => {
    const record = async (events: readonly RunEvent[], created: number): Promise<string> => {
      const { folder } = await createRun({
        project: dir.path,
        request: runRequest({ command: "kcore orchestrate deploy_node" }),
        who: "op@bastion",
        created,
        attended: false,
      });
      writeFileSync(folder.events, events.map(formatEvent).join(""));
      return folder.id;
    };
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
    const other = await record(wideRun({ nodes: 2, steps: 2 }), Date.now() - 9000);
    const ids = [];
    for (let index = 0; index < 6; index++)
      ids.push(await record(index === 5 ? reached : run, Date.now() - 8000 + index * 1000));
    const runs = await runsOfNode(dir.path, "n1");
    expect(runs.map(({ id }) => id)).to.deep.equal(ids.slice(1).reverse());
    expect(runs.map(({ id }) => id)).not.to.include(other);
    expect(runs[0]).to.include({ state: "done", milestone: "Member", command: "kcore orchestrate deploy_node" });
    expect(await runsOfNode(dir.path, "nobody")).to.deep.equal([]);
    expect(await runsOfNode("/nowhere", "n1")).to.deep.equal([]);
  });

  it("V8: tell how the run ended for this node, not for another one", async () => {
    const project = await makeTempDir("runs-of-node-apart");
    try {
      const [first, ...more] = wideRun({ nodes: 2, steps: 2 });
      const finished = (node: string, outcome: "done" | "failed") =>
        ({ type: "node.finished", node, outcome, at: 1, seq: 9000 }) as RunEvent;
      const last = { type: "run.finished", outcome: "failed", exitCode: 1, at: 2, seq: 9002 } as RunEvent;
      const nodes = first?.type === "run.started" ? first.nodes : [];
      const [well = "", sick = ""] = nodes;
      const kept = more.filter(({ type }) => type !== "run.finished" && type !== "node.finished");
      const { folder } = await createRun({
        project: project.path,
        request: runRequest({ command: "kcore state apply x" }),
        who: "op@bastion",
        created: Date.now(),
        attended: false,
      });
      const events = [first as RunEvent, ...kept, finished(well, "done"), finished(sick, "failed"), last];
      writeFileSync(folder.events, events.map(formatEvent).join(""));
      const states = await Promise.all(
        [well, sick].map(async (node) => (await runsOfNode(project.path, node))[0]?.state),
      );
      expect(states).to.deep.equal(["done", "failed"]);
    } finally {
      await project.remove();
    }
  });
});
