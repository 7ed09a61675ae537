import { expect } from "chai";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { emptyRun } from "#engine/events/run-model.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { describeEvent } from "#tui/describe-event.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { drawReport } from "#tui/html/report.ts";
import { drawJunit } from "#tui/junit.ts";
import { digestOf } from "#support/digests.ts";

const named = { stage: "tag", action: "local.command" } as const;
const problem = { code: "LOCAL_COMMAND_FAILED", message: "“git tag v1” ended with 128" } as const;
const bodies: readonly RunEventBody[] = [
  // prettier-ignore
  { type: "run.started", runId: "r1", title: "release", command: "kcore orchestrate release", nodes: [], stages: [{ id: "tag", title: "Tag", nodes: [] }], dryRun: false, who: "ops" },
  { type: "stage.started", stage: "tag" },
  { type: "action.started", ...named },
  { type: "action.output", ...named, stream: "out", text: "tagging\nv1\n" },
  { type: "action.output", ...named, stream: "err", text: "fatal: tag 'v1' exists\n" },
  // prettier-ignore
  { type: "action.finished", ...named, outcome: "failed", problem, position: { file: "orchestrate/release.yaml", line: 4, column: 5 }, duration: 20 },
  { type: "stage.finished", stage: "tag", outcome: "failed" },
  { type: "run.finished", outcome: "failed", exitCode: 1, problem },
];
const events: readonly RunEvent[] = bodies.map((body, index) => ({ seq: index + 1, at: 1000 + index, ...body }));
const model = reduceEvents(events);
const logOf = (node?: string) => (node === undefined ? "bastion.log" : `nodes/${node}.log`);
const place = "orchestrate/release.yaml:4:5";

describe("a failed action on the bastion", () => {
  it("has place, output and log in runs show and at the end of a run", () => {
    const text = drawDigest(digestOf(events, { logOf }));
    expect(text).to.contain(place).and.to.contain("| fatal: tag 'v1' exists\n    log: bastion.log");
  });

  it("has place, output and log in the report and in JUnit", () => {
    const page = drawReport(model, { logOf });
    expect(page).to.contain(`<code>${place}</code>`).and.to.contain("<code>bastion.log</code>");
    expect(page).to.match(/tagging\nv1\nfatal: tag &#39;v1&#39; exists/);
    expect(drawJunit(events))
      .to.contain(`file="orchestrate/release.yaml" line="4"`)
      .and.to.contain("tagging\nv1\nfatal");
  });

  it("has its output line by line in the plain view, each line with its stream", () => {
    const lines = events.flatMap((event) => describeEvent(emptyRun, event).map(({ text }) => text));
    expect(lines).to.include.members(["bastion  | tagging", "bastion  | v1", "bastion  ! fatal: tag 'v1' exists"]);
  });
});
