import { expect } from "chai";
import stringWidth from "string-width";
import type { RunEvent } from "#engine/events/event.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { digestOf } from "#support/digests.ts";
import { recordedRun } from "#support/recorded-runs.ts";

const digest = (events: readonly RunEvent[], state: string) => digestOf(events, { state });
const drawn = (name: string, state: string) => drawDigest(digest(recordedRun(name), state));

describe("runs show", () => {
  it("shows operator, time, revision and changes", () => {
    const lines = drawn("deploy-three", "done").split("\n");
    expect(lines[0]).to.equal("deploy_node  done after 58 s");
    expect(lines).to.include("  by ops@bastion, 2026-11-21 05:46:40 UTC, at 3f2a91c0ffee with uncommitted changes");
    expect(lines).to.include("  disks: data disk  (disk.partitioned)  n1, n2, n3");
    expect(lines).to.include("Steps: 31 succeeded (changed=21), 0 failed");
    expect(lines.length).to.be.at.most(24);
    expect(lines.join("\n")).to.not.contain("Next:");
  });

  it("shows no revision before the first commit", () => {
    const revisionLine = (dirty: boolean) => {
      const { revision: _, ...rest } = digest(recordedRun("done"), "done");
      return drawDigest({ ...rest, dirty }).split("\n")[2];
    };
    expect(revisionLine(true)).to.match(/, nothing is committed yet$/);
    expect(revisionLine(false)).to.match(/, no git revision$/);
  });

  it("shows the command that repeats a step on equal failures if the nodes are few, and no missing log", () => {
    const failed = recordedRun("failed");
    const alike = (count: number) => {
      const names = Array.from({ length: count }, (_, index) => `n${index + 1}`);
      const of = failed.filter((event) => "node" in event && event.node === "n1");
      const begun = failed[0];
      if (begun?.type !== "run.started") expect.fail();
      const bodies = names.flatMap((node) => of.map((event) => ({ ...event, node })));
      const numbered = [{ ...begun, nodes: names }, ...bodies].map((event, index) => ({ ...event, seq: index + 1 }));
      return drawDigest(digestOf(numbered as RunEvent[], { state: "failed", logOf: () => undefined }), {
        columns: 120,
      });
    };
    expect(alike(3)).to.contain("  n1, n2, n3  disks: install tool").and.to.contain(" --on n1,n2,n3\n");
    expect(alike(40)).to.contain("  n1…n40  disks: install tool").and.to.not.contain("again:");
    expect(alike(3)).to.not.contain("log:");
  });

  it("truncates long lines at the screen's width, and shows the end of output", () => {
    const long = digest(recordedRun("failed"), "failed");
    const detail = Array.from({ length: 40 }, (_, index) => `line ${index + 1} 漢字 ${"x".repeat(100)}`).join("\n");
    const failures = long.failures.map((failure) => ({
      ...failure,
      title: "t".repeat(100),
      problem: { ...failure.problem, detail },
    }));
    const changes = long.changes.map((change) => ({ ...change, title: "t".repeat(100) }));
    const lines = drawDigest({ ...long, failures, changes }, { columns: 80, fitsScreen: true }).split("\n");
    expect(lines.filter((line) => /x{9}|t{9}/.test(line)).map((line) => stringWidth(line))).to.satisfy(
      (widths: number[]) => widths.length > 6 && widths.every((width) => width <= 80),
    );
    expect(lines.find((line) => line.includes("t…"))).to.match(/ {2}n\d.*$/);
    const text = lines.join("\n");
    expect(text).to.contain("… 34 lines before\n").and.to.contain("| line 35 ").and.to.contain("| line 40 ");
    expect(text).to.not.contain("| line 34 ");
    expect(drawDigest({ ...long, failures }, {}))
      .to.contain("x".repeat(100))
      .and.to.contain("t".repeat(100));
  });

  it("shows that a dry run changed nothing, and the command that applies it", () => {
    const text = drawn("dry-run", "done");
    expect(text)
      .to.contain("(dry run: nothing was changed)")
      .and.to.contain("Would change:\n")
      .and.to.contain("2 unknown");
    expect(text).to.match(/Next:\n {2}kcore orchestrate deploy_node n1 {3}do it$/);
  });

  it("shows no next command if a dry run found all steps in order", () => {
    const inOrder = recordedRun("dry-run").map((event) =>
      event.type === "step.finished" || event.type === "action.finished" ? { ...event, outcome: "ok" as const } : event,
    );
    const text = drawDigest(digest(inOrder, "done"));
    expect(text).to.contain("(dry run: nothing was changed)").and.not.to.contain("Next:");
  });

  it("shows the command that attaches to a running run", () =>
    expect(drawn("deploy-three", "running")).to.contain("kcore runs attach 20261121-061500-a1b2   watch it"));
});
