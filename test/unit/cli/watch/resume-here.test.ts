import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { isFree } from "#cli/watch/watch-run.ts";
import { markProcess } from "#engine/run/process-mark.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("a view that resumes a run", () => {
  let folder: TempDir;
  before(async () => (folder = await makeTempDir("resume")));
  after(() => folder.remove());

  it("resumes a run whose process has ended, and no run that another process resumed", async () => {
    const header = join(folder.path, "run.json");
    const gone = { pid: 4_000_000, start: "1", boot: "0" };
    const write = async (process: unknown) => writeFile(header, JSON.stringify({ process }));
    const place = { id: "20261121-061500-a1b2", header };
    await write(gone);
    expect(await isFree(place, gone)).to.equal(true);
    // Another live process drives the run: the view does not wait for that process.
    await write(markProcess(process.pid));
    expect(await isFree(place, gone)).to.equal(false);
  });
});
