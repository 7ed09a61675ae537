import { expect } from "chai";
import { failedPartOf } from "../../../scripts/tests/run-job.ts";
import { nextJob } from "../../../scripts/tests/schedule.ts";
import { jobsOf, suiteOf, type Job, type JobClass } from "../../../scripts/tests/suites.ts";

function job(name: string, of: JobClass, known: number): Job {
  return { name, suite: "unit", class: of, files: [name], timeout: 1, known };
}

describe("the order of test jobs", () => {
  const waits = Array.from({ length: 9 }, (_, index) => job(`w${index}`, "waiting", 10 - index));
  const computes = [job("p1", "processor", 5), job("p2", "processor", 50), job("p3", "processor", 20)];

  it("has the longest first, and an emulated machine before all others", () => {
    expect(nextJob([...waits, ...computes], [], 2)?.name).to.equal("p2");
    expect(nextJob([...waits, ...computes, job("vm", "machine", 1)], [], 2)?.name).to.equal("vm");
  });

  it("allows as many computing jobs as cores, and waiting ones beside them", () => {
    const busy = [job("a", "processor", 1), job("b", "processor", 1)];
    expect(nextJob(computes, busy, 2)).to.equal(undefined);
    expect(nextJob([...computes, ...waits], busy, 2)?.name).to.equal("w0");
    expect(nextJob([...computes, ...waits], [...busy, ...waits.slice(0, 1)], 2)).to.equal(undefined);
  });

  it("allows at most six waiting jobs and one emulated machine", () => {
    expect(nextJob(waits, waits.slice(0, 5), 8)?.name).to.equal("w0");
    expect(nextJob(waits, waits.slice(0, 6), 8)).to.equal(undefined);
    expect(nextJob([job("vm2", "machine", 1), ...waits], [job("vm1", "machine", 1)], 8)?.name).to.equal("w0");
  });

  it("has the longest emulated machine first", () => {
    expect(nextJob([job("short", "machine", 40), job("long", "machine", 400), ...waits], [], 2)?.name).to.equal("long");
  });

  it("allows as many emulated machines as cores if no other job waits", () => {
    const [vm1, vm2, vm3] = ["vm1", "vm2", "vm3"].map((name) => job(name, "machine", 9)) as [Job, Job, Job];
    expect(nextJob([vm2, vm3, ...waits], [vm1], 2)?.name).to.equal("w0");
    expect(nextJob([vm2, vm3], [vm1, ...waits.slice(0, 1)], 2)?.name).to.equal("vm2");
    expect(nextJob([vm2, vm3], [vm1, ...computes.slice(0, 1)], 2)).to.equal(undefined);
    expect(nextJob([vm3], [vm1, vm2], 2)).to.equal(undefined);
  });

  it("allows any job on an idle machine", () => expect(nextJob(computes.slice(0, 1), [], 0)?.name).to.equal("p1"));
});

describe("the jobs of a run", () => {
  it("contain each test file of a suite once, long files alone", () => {
    const [long = "", ...others] = jobsOf(["integration"], {}).flatMap(({ files }) => files);
    const jobs = jobsOf(["integration"], { [long]: [500, 100] });
    expect(jobs.find(({ files }) => files.includes(long))?.files).to.deep.equal([long]);
    expect(jobs.flatMap(({ files }) => files)).to.have.members([long, ...others]);
    expect(jobs.find(({ files }) => files.includes(long))?.known).to.equal(500);
  });

  it("have each test file in its suite", () => {
    const all = jobsOf(["unit", "sim", "integration", "smoke", "lab", "vm"], {});
    for (const { files, suite } of all) for (const file of files) expect(suiteOf(file), file).to.equal(suite);
    expect(all.filter(({ suite }) => suite === "vm")[0]?.class).to.equal("machine");
  });

  it("contain only the wanted files, and an unknown suite is refused", () => {
    expect(jobsOf(["smoke", "vm"], {}, new Set(["test/lab/lab.test.ts"])).map(({ name }) => name)).to.deep.equal([
      "test/lab/lab.test.ts",
    ]);
    expect(() => jobsOf(["unti"], {})).to.throw("no suite “unti”; there are unit, sim");
  });
});

describe("the part of a failed job that runs again", () => {
  const group: Job = { ...job("2 files of unit", "processor", 1), files: ["a", "b"] };
  const partOf = (...files: readonly string[]): Job => {
    const failed = files.map((file) => ({ file, title: "", message: "" }));
    return failedPartOf({ job: group, failed, files: {}, cpu: 0, seconds: 0, output: "", beside: [] });
  };

  it("has the failed files, or all files after a crash", () => {
    expect(partOf("b")).to.deep.equal({ ...group, name: "b", files: ["b"] });
    for (const failed of [[group.name], ["(none)", "b"]]) expect(partOf(...failed)).to.equal(group);
  });
});
