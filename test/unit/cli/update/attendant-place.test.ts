import { expect } from "chai";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { takePlace } from "#cli/update/attendant-place.ts";
import { makeTempDir, type TempDir } from "../../../support/temp-dir.ts";

/** A process that takes the place, says so, and keeps it. */
const taker = `
const { takePlace } = await import(process.argv[1]);
process.stdout.write(JSON.stringify(await takePlace(process.argv[2])));
setInterval(() => {}, 1000);`;

describe("the place of who attends to an update", () => {
  let dir: TempDir;
  before(async () => (dir = await makeTempDir("place")));
  after(() => dir.remove());

  it("is one process's, and free again when that is gone, however it ended", async () => {
    const folder = dir.path;
    const place = import.meta.resolve("#cli/update/attendant-place.ts");
    const holder = spawn(process.execPath, ["--input-type=module", "-e", taker, place, folder], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    await once(holder.stdout, "data");
    expect(await takePlace(folder)).to.deep.equal({ taken: holder.pid });
    holder.kill("SIGKILL");
    await once(holder, "exit");
    const mine = await takePlace(folder);
    if ("taken" in mine) throw new Error(`${mine.taken} has it`);
    expect(await takePlace(folder)).to.deep.equal({ taken: process.pid });
    mine.leave();
    expect(await takePlace(folder)).to.have.property("leave");
  });
});
