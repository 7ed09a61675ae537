import { writeFile } from "node:fs/promises";
import { expect } from "chai";
import { isFree } from "#cli/watch/watch-run.ts";
import { markProcess } from "#engine/run/process-mark.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("whether a view can resume a run (isFree)", () => {
  const folder = folderOfEachTest("resume");

  it("is true once the process that ended the run is gone, and false if another process has resumed the run", async () => {
    const header = folder("run.json");
    const gone = { pid: 4_000_000, start: "1", boot: "0" };
    const write = async (process: unknown) => writeFile(header, JSON.stringify({ process }));
    const place = { id: "20261121-061500-a1b2", header };
    await write(gone);
    expect(await isFree(place, gone)).to.equal(true);
    // The other process lives: isFree answers at once, and does not wait for its end.
    await write(markProcess(process.pid));
    expect(await isFree(place, gone)).to.equal(false);
  });
});
