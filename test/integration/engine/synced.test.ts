import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { appendFileSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { RunEvent } from "#engine/events/event.ts";
import { startDelayLine, type DelayLine } from "#support/delay-line.ts";
import { TestProject } from "#support/kcore.ts";
import { startTargets, type Targets } from "#support/targets.ts";

/** Processes that time starts in a push: the ticker's `sleep`, and a `dd` for each piece of a slow line. A process a file would be 1,960. */
const ticks = 20;

describe("directory.synced over SSH", () => {
  let targets: Targets;
  let line: DelayLine;
  let project: TestProject;
  before(async () => {
    targets = await startTargets(1);
    line = await startDelayLine({ target: { host: targets.addresses[0] ?? "", port: targets.port } });
  });
  after(async () => {
    await line?.close();
    await targets?.stop();
  });
  beforeEach(() => {
    project = new TestProject();
    const { identityFile, hostKey } = targets;
    project.write({
      "project/roster/nodes.yaml": `nodes:
  t1: { address: 127.0.0.1, port: ${line.port}, identityFile: "${identityFile}", hostKeys: ["${hostKey}"], stateDir: "${project.path}/state" }
`,
      "project/states/site.yaml": `steps:
  - id: site
    directory.synced: { path: "${out()}", source: site, delete: true }
`,
    });
  });
  afterEach(() => project?.remove());

  const out = (name = ""): string => join(project.path, "out", name);
  const source = (name: string): string => join(project.project, "site", name);
  const make = (count: number, size: number): void => {
    for (let at = 0; at < count; at++) {
      const file = source(`d${at % 20}/f${at}`);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, String(at).padEnd(size, "."));
    }
  };

  async function apply(...flags: readonly string[]) {
    const bytes = line.bytesUp;
    let stdout = "";
    const processes = await targets.countStarts(async () => {
      const end = await project.kcore("state", "apply", "site", "--on", "t1", "--output", "json", ...flags);
      expect(end.code, end.stdout + end.stderr).to.equal(0);
      stdout = end.stdout;
    });
    const events = stdout
      .trimEnd()
      .split("\n")
      .map((each) => JSON.parse(each) as RunEvent);
    const outcome = events.find((event) => event.type === "step.finished")?.outcome;
    const notes = events.flatMap((event) => (event.type === "step.note" ? [event.text] : []));
    return { processes, bytes: line.bytesUp - bytes, outcome, notes };
  }
  const proveSame = (): void => void execFileSync("diff", ["-r", source(""), out()]);
  const runs = (): readonly string[] => readdirSync(join(project.path, "state/runs"));

  it("starts as many processes for 2,000 files as for 40 of the same bytes, and a look suffices where nothing differs", async () => {
    make(40, 50_000);
    const few = await apply();
    proveSame();
    const fewAgain = await apply();
    rmSync(source(""), { recursive: true });
    rmSync(out(), { recursive: true });
    make(2_000, 500);
    const many = await apply();
    proveSame();
    const before = runs();
    const manyAgain = await apply();
    console.log(
      `      40 files: ${few.processes}, again ${fewAgain.processes}; 2,000: ${many.processes}, again ${manyAgain.processes}`,
    );
    expect([few.outcome, many.outcome, fewAgain.outcome, manyAgain.outcome]).to.deep.equal([
      "changed",
      "changed",
      "ok",
      "ok",
    ]);
    // The list of 2,000 files is too long for a text of the shell: it takes a dd more, and a sha256sum.
    expect(many.processes - few.processes).to.be.within(-ticks, 2 + ticks);
    expect(manyAgain.processes - fewAgain.processes).to.be.within(-ticks, ticks);
    expect(runs(), "a runner was started").to.deep.equal(before);
  });

  it("sends little for a small change, and tells what it writes and deletes, a dry run too", async () => {
    make(1_000, 3_000);
    await apply();
    appendFileSync(source("d3/f3"), "more");
    mkdirSync(out("old"));
    writeFileSync(out("old/x"), "");
    const notes = ["writes 1: d3/f3", "deletes 2: old, old/x"];
    const dry = await apply("--dry-run");
    expect([dry.outcome, dry.notes]).to.deep.equal(["would-change", notes]);
    const run = await apply();
    expect([run.outcome, run.notes]).to.deep.equal(["changed", notes]);
    proveSame();
    expect(run.bytes).to.be.below(350_000);
  });
});
