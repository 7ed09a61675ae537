import { execFileSync, spawnSync } from "node:child_process";
import { expect } from "chai";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import { runStepOn, shells } from "#support/steps.ts";

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
    // The node's processes end a moment after their last word.
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
      // Full is what it shall be.
    }
  };

  for (const shell of shells)
    it(`F-5 F-19 leaves the old file, no temporary one, and names the cause, in ${shell}`, async () => {
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

  it("F-5 is told as such when the state folder itself is full, and the next run works", async () => {
    const state = join(small, "state");
    const ok: Step = { want: {}, probe: sh``, apply: sh`:`, always: true };
    const first = sessionOn(state);
    await first.session.perform([{ stage: "s", drafts: [draftOf("ok", ok)] }]);
    await first.session.finish("done");
    try {
      writeFileSync(join(small, "fill"), Buffer.alloc(1 << 20));
    } catch {
      // Full.
    }
    const full = sessionOn(state);
    const big = draftOf("ok", { ...put(), always: true });
    const { outcome, problem } = await full.session.perform([{ stage: "s", drafts: [big] }]);
    await full.session.finish(outcome);
    expect(outcome).to.equal("failed");
    expect(`${problem?.message} ${problem?.hint} ${problem?.detail}`).to.match(/disk full|No space left/);
    rmSync(join(small, "fill"));
    const again = sessionOn(state);
    const result = await again.session.perform([{ stage: "s", drafts: [draftOf("ok", ok)] }]);
    await again.session.finish(result.outcome);
    expect(result.outcome).to.equal("done");
  });
});
