import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "chai";
import { keepWarm, launchRun } from "#engine/run/launch-run.ts";
import type { RunRequest } from "#engine/orchestrate/run-types.ts";
import { createRun, runFolder } from "#engine/run/run-folder.ts";
import { TestProject } from "#support/kcore.ts";

const runMain = join(import.meta.dirname, "../../../src/cli/run-main.ts");

const request: RunRequest = {
  what: { kind: "state", names: ["slow"] },
  on: "here",
  params: {},
  dryRun: false,
  grants: [],
  skipHealth: false,
  waitForLock: false,
  yes: false,
  command: "kcore state apply slow --on here",
};

describe("a run's process that was started in advance", () => {
  it("exits silently when its parent closes the pipe without a run", async () => {
    const child = spawn(process.execPath, [runMain], { stdio: ["pipe", "pipe", "pipe", "pipe"] });
    child.stdin?.end();
    const closed = once(child, "close");
    expect(await text(child.stderr as NodeJS.ReadableStream)).to.equal("");
    expect(await closed).to.deep.equal([0, null]);
  });

  it("counts as exited when it could not be started", async () => {
    const project = mkdtempSync(join(tmpdir(), "kcore-warm-"));
    try {
      const folder = runFolder(project, "20261122-120000-abcd");
      mkdirSync(folder.path, { recursive: true });
      const warm = spawn("/nowhere/node", { stdio: ["pipe", "ignore", "pipe", "pipe"] });
      keepWarm(warm.on("error", () => undefined));
      const { hasExited } = launchRun({ folder, program: [process.execPath, "-e", "process.exit(0)", "--"] });
      for (let tries = 0; tries < 500 && !hasExited(); tries++) await pause(20);
      expect(hasExited()).to.equal(true);
    } finally {
      rmSync(project, { recursive: true, force: true });
    }
  });

  it("takes over the run's folder, log and process name", async () => {
    const project = new TestProject({
      "states/slow.yaml": 'steps:\n  - id: slow\n    command.run: { cmd: "sleep 3" }\n',
    });
    try {
      const created = Date.now();
      const who = "tester@bastion";
      const { folder } = await createRun({ project: project.project, request, who, created, attended: false });
      const { id, processLog } = folder;
      // The flags of bin/kcore: a name in `ps` has no more room than the command line had.
      const words = [
        "--disable-warning=ExperimentalWarning",
        "--max-semi-space-size=4",
        "--min-semi-space-size=4",
        runMain,
      ];
      keepWarm(spawn(process.execPath, words, { detached: true, stdio: ["pipe", "ignore", "pipe", "pipe"] }));
      launchRun({ folder, program: [process.execPath, runMain] });
      const pid = await project.driver();
      expect(readFileSync(`/proc/${pid}/cmdline`, "utf8")).to.contain(`${id} ${project.project}`);
      expect(readlinkSync(`/proc/${pid}/cwd`)).to.equal(project.project);
      expect([1, 2].map((descriptor) => readlinkSync(`/proc/${pid}/fd/${descriptor}`))).to.deep.equal([
        processLog,
        processLog,
      ]);
      expect(readFileSync(`/proc/${pid}/environ`, "utf8")).not.to.contain("KCORE_PASSPHRASE_FD");
      expect((await project.kcore("runs", "attach", id)).code).to.equal(0);
      expect(readFileSync(processLog, "utf8")).to.equal("");
    } finally {
      await project.remove();
    }
  });
});
