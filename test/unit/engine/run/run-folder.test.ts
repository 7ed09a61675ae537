import { stat } from "node:fs/promises";
import { expect } from "chai";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { createRun, listRunIds, logName, readHeader, runFolder } from "#engine/run/run-folder.ts";
import { problemsIn } from "#support/problems.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const what = { kind: "orchestration", name: "demo" };
const request = { what, command: "kcore orchestrate demo" } as unknown as RunRequest;

describe("the folders of runs", () => {
  const at = folderOfEachTest("run-folder");
  const create = async (created: number): Promise<string> =>
    (await createRun({ project: at(), request, who: "me@here", created, attended: false })).folder.id;

  it("are listed in the order in which the runs began, also within one second", async () => {
    const second = 1_790_000_000_000;
    const ids: string[] = [];
    for (const milliseconds of [3, 250, 251, 400, 998, 999, 1000]) ids.push(await create(second + milliseconds));
    expect(await listRunIds(at())).to.deep.equal(ids);
  });

  it("are unique, also for 40 runs that begin in one millisecond", async () => {
    const ids = await Promise.all(Array.from({ length: 40 }, () => create(1_790_000_000_123)));
    expect(new Set(ids).size).to.equal(40);
    for (const id of ids) expect((await readHeader(runFolder(at(), id))).id).to.equal(id);
    expect(await listRunIds(at())).to.have.length(40);
  });

  it("are readable by their owner alone", async () => {
    const { path, header } = runFolder(at(), await create(1_790_000_000_000));
    for (const [file, mode] of [
      [at(".kcore", "runs"), 0o700],
      [path, 0o700],
      [header, 0o600],
    ] as const)
      expect((await stat(file)).mode & 0o777, file).to.equal(mode);
  });

  it("have no path outside, whatever a run's id or a node's name", () => {
    for (const id of ["..", "../../etc", "20261122-120000-0000/..", "x20261122-120000-0000", ""])
      expect(problemsIn(() => runFolder(at(), id)).join(), id).to.contain("RUN_UNKNOWN");
    for (const name of ["..", ".", "../n1", "/etc/passwd", "a/../../b", ".hidden"])
      expect(logName(name), name).to.match(/^nodes\/[^./][^/]*\.log$/);
    expect(logName("web-1")).to.equal("nodes/web-1.log");
  });
});
