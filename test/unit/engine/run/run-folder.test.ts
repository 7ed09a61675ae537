import { stat } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import type { RunRequest } from "#engine/orchestrate/execute.ts";
import { createRun, listRunIds, logName, readHeader, runFolder } from "#engine/run/run-folder.ts";
import { problemsIn } from "#support/problems.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const request = {
  what: { kind: "orchestration", name: "demo" },
  command: "kcore orchestrate demo",
} as unknown as RunRequest;

describe("the folders of runs", () => {
  let project: TempDir;
  const create = async (created: number): Promise<string> =>
    (await createRun({ project: project.path, request, who: "me@here", created, attended: false })).folder.id;

  beforeEach(async () => {
    project = await makeTempDir("run-folder");
  });
  afterEach(() => project.remove());

  it("are listed in the order in which the runs began, also within one second", async () => {
    const second = 1_790_000_000_000;
    const ids: string[] = [];
    for (const milliseconds of [3, 250, 251, 400, 998, 999, 1000]) ids.push(await create(second + milliseconds));
    expect(await listRunIds(project.path)).to.deep.equal(ids);
  });

  it("are never shared by two runs, however many begin in one millisecond", async () => {
    const ids = await Promise.all(Array.from({ length: 40 }, () => create(1_790_000_000_123)));
    expect(new Set(ids).size).to.equal(40);
    for (const id of ids) expect((await readHeader(runFolder(project.path, id))).id).to.equal(id);
    expect(await listRunIds(project.path)).to.have.length(40);
  });

  it("are nobody else's business", async () => {
    const { path, header } = runFolder(project.path, await create(1_790_000_000_000));
    for (const [file, mode] of [
      [join(project.path, ".kcore", "runs"), 0o700],
      [path, 0o700],
      [header, 0o600],
    ] as const)
      expect((await stat(file)).mode & 0o777, file).to.equal(mode);
  });

  it("lead nowhere else, whatever a run's id or a node's name is", () => {
    for (const id of ["..", "../../etc", "20261122-120000-0000/..", "x20261122-120000-0000", ""])
      expect(problemsIn(() => runFolder(project.path, id)).join(), id).to.contain("RUN_UNKNOWN");
    for (const name of ["..", ".", "../n1", "/etc/passwd", "a/../../b", ".hidden"])
      expect(logName(name), name).to.match(/^nodes\/[^./][^/]*\.log$/);
    expect(logName("web-1")).to.equal("nodes/web-1.log");
  });
});
