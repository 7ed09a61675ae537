import { expect } from "chai";
import type { RunEvent } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import type { Problem } from "#errors/problem.ts";
import { causeFirst, causeLine } from "#tui/cause-line.ts";
import { drawCiErrors } from "#tui/ci.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { drawReport } from "#tui/html/report.ts";
import { drawMarkdown } from "#tui/markdown.ts";
import { digestOf } from "#support/digests.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { linesOf, sceneOf } from "#support/scenes.ts";
import { RunParts } from "#web/run-parts.ts";

const failed: Problem = {
  code: "STEP_FAILED",
  message: "“fetch” (command.run) failed with exit code 3",
  detail: "fetching tool.tar.gz\nchecksum mismatch\n-----\n\n",
};

/** A recorded failed run with this problem in its failed step. */
const runWith = (problem: Problem, exitStatus: number) =>
  recordedRun("failed").map((event): RunEvent =>
    event.type === "step.finished" && event.outcome === "failed" ? { ...event, problem, exitStatus } : event,
  );

describe("the cause of a failed step in one line", () => {
  it("is the last line of its output with its exit code", () => {
    expect(causeLine({ problem: failed, exitStatus: 3 })).to.equal("checksum mismatch (exit 3)");
    expect(causeLine({ problem: failed, exitStatus: 137 })).to.equal("checksum mismatch (signal 9)");
    expect(causeLine({ problem: failed }), "a record of a former version").to.equal("checksum mismatch");
  });

  it("is the problem's message without output, or if the message has the reason", () => {
    const { detail: _, ...silent } = failed;
    expect(causeLine({ problem: silent, exitStatus: 3 })).to.equal(failed.message);
    const full: Problem = { code: "DISK_HAS_DATA", message: "disk sdb holds data", detail: "/dev/sdb1  ext4" };
    expect(causeLine({ problem: full, exitStatus: 16 })).to.equal("disk sdb holds data");
    expect(causeLine({})).to.equal(undefined);
  });

  it("is in the node's row, and at the end of the run", () => {
    const events = runWith(failed, 3);
    const rowAt = (columns: number) =>
      linesOf(sceneOf(events, { columns }), { columns }).find((line) => line.includes("✗ n1 "));
    expect(rowAt(100)).to.contain("install tool: checksum mismatch (exit 3)");
    expect(rowAt(80), "without room for both").to.contain("failed       checksum mismatch (exit 3)");
    const long = runWith({ ...failed, detail: `no such file: /srv/${"deep/".repeat(20)}tool.tar.gz` }, 3);
    for (const columns of [60, 80, 120]) {
      const row = linesOf(sceneOf(long, { columns }), { columns }).find((line) => line.includes("✗ n1 "));
      expect(row, `${columns}`).to.match(/no such file: .*…? \(exit 3\) /);
    }
    const end = drawDigest(digestOf(events));
    expect(end).to.contain("| checksum mismatch\n").and.to.contain("checksum mismatch (exit 3)  [STEP_FAILED]");
  });

  it("is in the failed step's pane at 80x24, in ::error, in Markdown, and first on the pages", () => {
    const full = {
      ...failed,
      detail: `${"reading the archive\n".repeat(9)}tar: write error: No space left on device\n`,
    };
    const cause = "tar: write error: No space left on device (exit 28)";
    const events = runWith(full, 28);
    const model = reduceEvents(events);
    const pane = linesOf(sceneOf(events, { columns: 80, rows: 24 }), { columns: 80, rows: 24 });
    expect(
      pane.filter((line) => line.includes("✗ tar: write error: No space left on device (exit 28)")),
    ).to.have.length(1);
    const digest = digestOf(events);
    expect(drawCiErrors(digest, () => undefined)).to.contain(`::${cause} [STEP_FAILED]`);
    expect(drawMarkdown(digest)).to.contain(`${cause}  [STEP_FAILED]`);
    for (const page of [drawReport(model), new RunParts().drawPage(model, { base: "/", isLive: false }).source]) {
      expect(page).to.contain(`<p class="cause">${cause}</p>`);
      const [before = ""] = page.split('<section class="figures"');
      expect(before, "before the figures").to.contain("What went wrong");
    }
  });

  it("is before the message of a failed action", () => {
    const problem: Problem = {
      code: "LOCAL_COMMAND_FAILED",
      message: "“make image” ended with exit code 28",
      detail: "making it\ncp: No space left on device",
    };
    expect(causeFirst(problem).message).to.equal("cp: No space left on device: “make image” ended with exit code 28");
  });
});
