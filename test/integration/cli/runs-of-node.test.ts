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
});
