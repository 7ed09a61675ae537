import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { isFree } from "#cli/watch/watch-run.ts";
import { markProcess } from "#engine/run/process-mark.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a view that resumes a run", () => {
  const folder = folderOfEachTest("resume");

  it("resumes a run whose process has ended, and no run that another process resumed", async () => {
    const header = folder("run.json");
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
