import { spawn } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { listRunIds } from "#engine/run/run-folder.ts";
import { TestProject } from "#support/kcore.ts";

describe("a node whose lock is held by a run with a dead process", () => {
  let project: TestProject;
  let run: string;
  beforeEach(async () => {
    project = new TestProject({
      "states/slow.yaml": 'steps:\n  - id: slow\n    command.run: { cmd: "while :; do sleep 0.1; done" }\n',
    });
    const { ended } = project.start(["state", "apply", "slow", "--on", "here"]);
    const pid = await project.driver();
    const isBegun = () =>
      globSync(join(project.path, "state/runs/*/current")).some((file) => readFileSync(file, "utf8") !== "");
    while (!isBegun()) await sleep(20);
    process.kill(pid, "SIGKILL");
    await ended;
    [run = ""] = await listRunIds(project.project);
  });
  afterEach(async () => {
    // A failed test has not freed the node: its runner waits for a step that never ends.
    await project.kcore("node", "unlock", "here", "--yes");
    await project.remove();
  });
  const refusalOfLock = async () => (await project.kcore("exec", "--lock", "--on", "here", "--", "true")).stderr;

  it("is freed by kcore runs abort, which the refusal names and the audit trail records", async () => {
    expect(await refusalOfLock())
      .to.contain("[NODE_LOCKED]")
      .and.to.contain(`kcore runs abort ${run}`);
    const other = await project.kcore("runs", "abort", "last");
    expect([other.code, other.stdout]).to.deep.equal([0, `here  held by run ${run} of ${await startedBy()}\n`]);
    const { code, stdout } = await project.kcore("runs", "abort", run);
    expect([code, stdout]).to.deep.equal([0, `here  let go by run ${run} of ${await startedBy()}\n`]);
    expect(await refusalOfLock()).to.equal("");
    const trail = JSON.parse((await project.kcore("audit", "show", "--runs", "-o", "json")).stdout) as object[];
    expect(JSON.stringify(trail)).to.contain(`"command":"kcore runs abort ${run}"`);
  });

  it("is freed by kcore node unlock, which names the run and asks for confirmation", async () => {
    const asked = await project.kcore("node", "unlock", "here");
    expect([asked.code, asked.stdout]).to.deep.equal([2, `here  held by run ${run} of ${await startedBy()}\n`]);
    expect(asked.stderr).to.contain("[QUESTION_UNANSWERED]");
    const freed = await project.kcore("node", "unlock", "here", "--yes");
    expect([freed.code, freed.stdout]).to.deep.equal([0, `here  let go by run ${run} of ${await startedBy()}\n`]);
    expect((await project.kcore("node", "unlock", "here")).stdout).to.equal("here  held by nobody\n");
    expect(await refusalOfLock()).to.equal("");
  });

  async function startedBy(): Promise<string> {
    const shown = await project.kcore("runs", "show", run, "-o", "json");
    return (JSON.parse(shown.stdout) as { who: string }).who;
  }
});

describe("a node whose lock names a dead runner", () => {
  it("is unlocked without a signal to a process that has since got the step's process id", async () => {
    const project = new TestProject();
    const other = spawn("sleep", ["300"], { detached: true, stdio: "ignore" });
    const state = join(project.path, "other");
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    project.write({
      "project/roster/nodes.yaml": `nodes: { here: { transport: local, stateDir: ${state} } }\n`,
      "other/lock/1": `4194304:1:${boot}:r1:me@there\n`,
      "other/runs/r1/current": `${other.pid} 1 x\n`,
    });
    try {
      const { stdout } = await project.kcore("node", "unlock", "here", "--yes");
      expect(stdout).to.equal("here  held by nobody\n");
      expect([other.exitCode, other.signalCode]).to.deep.equal([null, null]);
    } finally {
      other.kill();
      await project.remove();
    }
  });
});
