import { expect } from "chai";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { startJob } from "../../../scripts/tests/run-job.ts";
import { root, type Job } from "../../../scripts/tests/suites.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("a job of the test run", () => {
  let temp: TempDir;
  beforeEach(async () => {
    temp = await makeTempDir("job");
  });
  afterEach(() => temp.remove());

  function jobOf(text: string, timeout = 300_000): Job {
    const file = join(temp.path, "own.test.ts");
    writeFileSync(file, text);
    return { name: "own", suite: "unit", class: "processor", files: [relative(root, file)], timeout, known: 1 };
  }

  it("reports counts, failures and the CPU of its children", async () => {
    const spin = "const end = process.cpuUsage().user + 2e5; while (process.cpuUsage().user < end);";
    const job = jobOf(`
      import { spawnSync } from "node:child_process";
      it("passes", () => void spawnSync(process.execPath, ["-e", ${JSON.stringify(spin)}]));
      it("fails", () => { throw new Error("wrong"); });
      it.skip("is skipped", () => {});
    `);
    const { files, failed, cpu, output } = await startJob(job).ended;
    const [counts] = Object.values(files);
    expect(counts).to.deep.include({ passed: 1, failed: 1, skipped: 1 });
    expect(failed).to.deep.equal([{ file: job.files[0], title: "fails", message: "wrong" }]);
    expect(cpu).to.be.greaterThan(0.2);
    expect(output).to.include("Error: wrong");
  });

  it("fails when its process ends without a result", async () => {
    const { failed } = await startJob(jobOf("process.exit(0);")).ended;
    expect(failed).to.deep.equal([{ file: "own", title: "own", message: "ended by 0 without a result" }]);
  });

  it("runs hooks when it is ended during a hanging test, and starts no further test", async () => {
    const [begun, cleaned, other] = ["begun", "cleaned", "other"].map((name) => join(temp.path, name)) as [
      string,
      string,
      string,
    ];
    const job = jobOf(`
      import { writeFileSync } from "node:fs";
      after(() => writeFileSync(${JSON.stringify(cleaned)}, ""));
      it("hangs", async () => {
        writeFileSync(${JSON.stringify(begun)}, "");
        await new Promise((resolve) => setTimeout(resolve, 2 ** 30));
      });
      it("is another", () => writeFileSync(${JSON.stringify(other)}, ""));
    `);
    const running = startJob(job);
    while (!existsSync(begun)) await new Promise((resolve) => setTimeout(resolve, 20));
    running.end();
    const { failed } = await running.ended;
    expect(failed[0]?.title).to.equal("hangs");
    expect(readFileSync(cleaned, "utf8")).to.equal("");
    expect(existsSync(other)).to.equal(false);
  });
});
