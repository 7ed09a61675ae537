import { execFileSync, spawnSync } from "node:child_process";
import { expect } from "chai";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  statfsSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { eventually } from "#support/cluster.ts";
import { draftOf, performOn, sessionOn } from "#support/sessions.ts";
import { shellsOf } from "#support/shells.ts";
import { runStepOn, stepOf } from "#support/steps.ts";

describe("a full disk on a node", () => {
  let folder: string;
  let small: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "kcore-full-"));
    small = join(folder, "small");
    mkdirSync(small);
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m,mode=755", "none", small]);
  });
  afterEach(async () => {
    // The node's processes end a moment after the run.
    while (spawnSync("umount", [small], { stdio: "ignore" }).status !== 0)
      await new Promise((resolve) => setTimeout(resolve, 50));
    rmSync(folder, { recursive: true, force: true });
  });

  const put = (): Step => {
    const path = join(small, "conf");
    const blob = blobOf("new ".repeat(100_000));
    return {
      want: { content: blob.sha256 },
      probe: sh`fact content "$(sha256sum <${path} | cut -d" " -f1)"`,
      apply: sh`put_file ${blob} ${path} 0644 root root`,
    };
  };
  const fill = (): void => {
    try {
      writeFileSync(join(small, "fill"), Buffer.alloc(900_000));
    } catch {
      // The disk must be full.
    }
  };

  for (const shell of shellsOf(import.meta.filename))
    it(`F-5 F-19 keeps the old file, leaves no temporary one, and names the cause, in ${shell}`, async () => {
      writeFileSync(join(small, "conf"), "old");
      fill();
      const full = await runStepOn(shell, put());
      expect(full.outcome).to.equal("failed");
      expect(full.stderr).to.match(/No space left on device/);
      expect(readFileSync(join(small, "conf"), "utf8")).to.equal("old");
      expect(readdirSync(small).toSorted()).to.deep.equal(["conf", "fill"]);
      rmSync(join(small, "fill"));
      expect((await runStepOn(shell, put())).outcome).to.equal("changed");
    });

  it("F-5 is named as the cause when it holds the state folder, and the next run works", async () => {
    const state = join(small, "state");
    const ok: Step = { want: {}, probe: sh``, apply: sh`:`, always: true };
    await performOn(state, [draftOf("ok", ok)]);
    try {
      writeFileSync(join(small, "fill"), Buffer.alloc(1 << 20));
    } catch {
      // The disk must be full.
    }
    const full = sessionOn(state);
    const big = draftOf("ok", { ...put(), always: true });
    const { outcome, problem } = await full.session.perform([{ stage: "s", drafts: [big] }]);
    await full.session.finish(outcome);
    expect(outcome).to.equal("failed");
    expect(`${problem?.message} ${problem?.hint} ${problem?.detail}`).to.match(/disk full|No space left/);
    rmSync(join(small, "fill"));
    expect((await performOn(state, [draftOf("ok", ok)])).outcome).to.equal("done");
  });

  /** Runs with ever more KiB free, until the three files of the run fit. */
  const inLittleRoom = async (by: number): Promise<void> => {
    for (let free = 16, isDone = false; !isDone; free += by) {
      const filled = join(small, "fill");
      spawnSync("dd", ["if=/dev/zero", `of=${filled}`, "bs=1k"]);
      truncateSync(filled, statSync(filled).size - (free << 10));
      const state = join(small, "state");
      const run = sessionOn(state, { runId: "r1" });
      const drafts = ["a", "b", "c"].map((name) =>
        draftOf(name, stepOf(fileManaged, { path: join(small, name), content: randomBytes(6_000).toString("hex") })),
      );
      const { outcome, problem } = await run.session.perform([{ stage: "s", drafts }]);
      await run.session.finish(outcome, problem);
      isDone = outcome === "done";
      // In a narrow room the state fits, and the step's own file does not.
      const { code, message, hint, detail } = problem ?? {};
      const told = `${free} ${code} ${message} ${hint} ${detail}`;
      if (!isDone) expect(told).to.match(/STATE_UNUSABLE .*disk full|STEP_FAILED .*No space left/s);
      const lock = join(state, "lock");
      // The runner may remove a name after the folder was listed.
      const isFile = (name: string) => lstatSync(join(lock, name), { throwIfNoEntry: false })?.isFile() === true;
      await eventually(() => readdirSync(lock).every(isFile));
      for (const name of readdirSync(small)) rmSync(join(small, name), { recursive: true });
    }
  };

  it("ends a run at once with the reason, at any number of free KiB, and its runner releases the lock", () =>
    inLittleRoom(4));

  it("ends a run at once with the reason on ext4 too, where the lock's name takes a block", async () => {
    const image = join(folder, "image");
    execFileSync("umount", [small]);
    execFileSync("truncate", ["-s", "1M", image]);
    execFileSync("mkfs.ext4", ["-q", "-F", "-b", "1024", "-m", "0", "-O", "^has_journal", image]);
    execFileSync("mount", ["-o", "loop", image, small]);
    rmSync(join(small, "lost+found"), { recursive: true });
    await inLittleRoom(3);
  });

  it("caused by a step ends that step only at an abort", async () => {
    const state = join(small, "state");
    const run = sessionOn(state, { runId: "r1" });
    const apply = sh`cat /dev/zero >${small}/fill 2>/dev/null; note full; sleep 1000`;
    const drafts = [draftOf("fills", { want: {}, probe: sh``, apply, always: true })];
    const over = run.session.perform([{ stage: "s", drafts }]);
    await eventually(() => existsSync(join(small, "fill")) && statfsSync(small).bfree === 0);
    const beat = readFileSync(join(state, "runs/r1/beat"), "utf8");
    await eventually(() => readFileSync(join(state, "runs/r1/beat"), "utf8") !== beat);
    expect(readFileSync(join(state, "runs/r1/attached"), "utf8")).to.not.equal("");
    run.session.abort();
    const { outcome, problem } = await over;
    await run.session.finish(outcome, problem);
    expect(outcome).to.equal("failed");
    expect(problem?.code).to.equal("STATE_UNUSABLE");
  });
});
