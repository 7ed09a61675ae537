import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import stringWidth from "string-width";
import type { RunEvent } from "#engine/events/event.ts";
import { drawCiErrors } from "#tui/ci.ts";
import { drawDigest, type DigestOptions } from "#tui/draw-digest.ts";
import { digestOf } from "#support/digests.ts";
import { recordedRun } from "#support/recorded-runs.ts";
import { wideRun } from "#support/wide-run.ts";

const draw = (events: readonly RunEvent[], options: DigestOptions = {}) =>
  drawDigest(digestOf(events), { isEnd: true, ...options });
const inOrderAgain = wideRun({ nodes: 3, steps: 16, isInOrder: true });

describe("the end of a run", () => {
  it("is three lines without changes and failures", () => {
    const lines = draw(inOrderAgain).split("\n");
    expect(lines).to.have.length(3);
    expect(lines[0]).to.match(/^deploy_node {2}done after 4\.3 s {2}\(run 20261121-061500-a1b2\)$/);
    expect(lines.slice(1)).to.deep.equal([
      "3 nodes: 3 done (n1, n2, n3)",
      "Steps: 36 succeeded (changed=0), 0 failed, 12 skipped",
    ]);
  });

  it("names the changed nodes, and the changes by step", () => {
    const text = draw(recordedRun("done"));
    expect(text).to.contain("\n2 nodes: 2 done (n1, n2), 1 of them changed (n1)\n");
    expect(text).to.contain("\nChanged:\n  disks: data disk  (disk.partitioned)  n1\n");
    expect(text).to.not.contain("resume");
  });

  it("shows equal changes of several waves once, and many changes as one line per stage", () => {
    const base = digestOf(recordedRun("deploy-three"));
    const [change] = base.changes;
    // n1 is in the first wave; the stages of the second wave have the suffix @2.
    const waved = inOrderAgain.map((event) =>
      "node" in event && "stage" in event && event.node !== "n1" ? { ...event, stage: `${event.stage}@2` } : event,
    );
    const events = waved.map((event) =>
      event.type === "step.finished" && /^(nix step 9|kcore step 13)$/.test(event.title)
        ? { ...event, title: event.title.replace("nix step 9", "nix"), outcome: "changed" as const }
        : event,
    );
    expect(draw(events)).to.contain(
      "Changed:\n  nix  (file.managed)  n1, n2, n3\n  kcore: kcore step 13  (file.managed)  n1, n2, n3",
    );
    const changes = Array.from({ length: 30 }, (_, index) => ({
      ...(change ?? expect.fail()),
      stage: index < 20 ? "disks" : "nix",
      title: `step ${index + 1}`,
      nodes: [`n${(index % 3) + 1}`],
    }));
    const lines = drawDigest({ ...base, changes }, { isEnd: true }).split("\n");
    expect(lines.slice(lines.indexOf("Changed:") + 1, lines.indexOf("Changed:") + 3)).to.deep.equal([
      "  disks: step 1, step 2, step 3 and 17 more  n1, n2, n3",
      "  nix: step 21, step 22, step 23 and 7 more  n3, n1, n2",
    ]);
  });

  it("shows a failure's place, output, log and next command", () => {
    const sourceLine = () => "  - command.run: { command: apt-get install nope }";
    const text = draw(recordedRun("failed"), { sourceLine });
    expect(text).to.match(/^deploy_node {2}failed after /);
    expect(text).to.contain("2 nodes: 1 failed (n1), 1 unreachable (n2)\n");
    expect(text).to.contain("  n1  disks: install tool  (command.run)\n    states/disks.yaml:2:5  the command ended");
    expect(text).to.contain("| E: Unable to locate package nope").and.to.contain("nodes/n1.log");
    expect(text).to.contain("        2 |   - command.run: { command: apt-get install nope }");
    expect(text).to.contain("n2 (192.0.2.12:22) does not answer within 10 s  [HOST_UNREACHABLE]");
    expect(text).to.contain("    again: kcore orchestrate deploy_node --on n1\n").and.not.to.contain("after it failed");
    expect(text).to.match(/\nNext:\n {2}kcore orchestrate deploy_node \S+ +when the project is mended\n/);
    expect(text).to.match(/ {2}kcore runs resume \S+ +when a node is mended: go on where it stopped\n/);
  });

  it("fits 200 nodes on a screen, with lines broken at words", () => {
    const events = wideRun({ nodes: 200, steps: 12, failEvery: 3 });
    const lines = draw(events, { columns: 60, fitsScreen: true, color: true })
      .split("\n")
      .map(stripVTControlCharacters);
    expect(lines.length).to.be.at.most(45);
    expect(lines.filter((line) => stringWidth(line) > 60)).to.deep.equal([]);
    const words = new Set(draw(events).split(/\s+/));
    const wholeWords = lines.filter((line) => !line.includes("…")).flatMap((line) => line.split(/\s+/));
    expect(wholeWords.filter((word) => word !== "" && !words.has(word) && !/^n?\d+,?$/.test(word))).to.deep.equal([]);
  });

  it("shows each cause on GitHub once, at its place", () => {
    const failed = digestOf(recordedRun("failed"));
    const lines = drawCiErrors(failed, ({ file }) => `infra/${file}`).split("\n");
    expect(lines[0]).to.equal(
      "::error title=n1  disks%3A install tool,file=infra/states/disks.yaml,line=2,col=5::" +
        "the command ended with exit code 100 [STEP_FAILED]%0Alook at what it printed",
    );
    expect(lines[1]).to.match(/^::error title=n2 {2}unreachable::n2 \(192\.0\.2\.12:22\) does not answer.*%0A/);
    const wide = digestOf(wideRun({ nodes: 200, steps: 12, failEvery: 1 }));
    expect(drawCiErrors(wide, () => undefined).split("\n").length).to.equal(wide.failures.length);
  });
});
