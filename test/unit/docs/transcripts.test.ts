import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { drawFailedAnswers, drawGroups } from "#cli/adhoc/answers.ts";
import { drawStats } from "#cli/runs/stats.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { certificateColumns } from "#tui/columns/certificate-columns.ts";
import { conflictColumns } from "#tui/columns/conflict-columns.ts";
import { controllerColumns } from "#tui/columns/controller-columns.ts";
import { nodeColumns } from "#tui/columns/node-columns.ts";
import { createPlainView } from "#tui/plain.ts";
import { digestRun } from "#tui/digest.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { RunStats } from "#tui/run-stats.ts";
import { readPages, root } from "#support/pages.ts";
import { fits } from "#support/transcripts.ts";
import { writtenText } from "#support/written-text.ts";

const blocks = readPages().flatMap((page) => page.blocks);
/** The lines of the page's block that contains these words. */
function shown(page: string, words: string): readonly string[] {
  const found = blocks.filter((block) => block.page === page && block.text.includes(words));
  expect(found, `${page}: ${words}`).to.have.length(1);
  return (found[0]?.text ?? "").split("\n").slice(0, -1);
}

const runId = "20261121-065724-2580";
const stage = "tools";
/** The steps of a node in order, with their ends. */
function steps(node: string, ends: readonly object[]): readonly RunEventBody[] {
  return ends.map(
    (end, index) =>
      ({
        type: "step.finished",
        node,
        stage,
        step: `tools/${index}`,
        title: `step ${index}`,
        module: "file.managed",
        outcome: "ok",
        duration: 1e3,
        ...end,
      }) as RunEventBody,
  );
}
const started: RunEventBody = {
  type: "run.started",
  runId,
  title: "state apply web",
  command: "kcore state apply web --on '*'",
  nodes: ["n1", "n2"],
  stages: [{ id: stage, title: stage, nodes: ["n1", "n2"] }],
  dryRun: false,
  revision: "f128abbd561c",
  dirty: true,
  who: "op@bastion",
};
const failure = {
  title: "install tool",
  module: "package.installed",
  outcome: "failed",
  problem: { code: "STEP_FAILED", message: "no package “nope” is known", detail: "E: Unable to locate package nope" },
  position: { file: "states/tools.yaml", line: 7, column: 5, length: 17 },
} as const;
const stamped = (events: readonly RunEventBody[]): readonly RunEvent[] =>
  events.map((event, index) => ({ ...event, seq: index + 1, at: 1795240000000 + index }));

describe("the transcripts of README and docs", () => {
  const columns = {
    nodes: nodeColumns,
    controllers: controllerColumns,
    conflicts: conflictColumns,
    certificates: certificateColumns,
  } as const;
  for (const [what, known] of Object.entries(columns))
    it(`show the columns of kcore get ${what}`, () => {
      const titles = known.filter(({ wide, live }) => !wide && !live).map(({ title }) => title);
      const headings = blocks.flatMap(({ at, text }) =>
        Array.from(
          text.matchAll(new RegExp(`^\\$ kcore .*\\bget ${what}\\b.*\\n([A-Z-]+ +[A-Z-]+ .*)$`, "gm")),
          ([, line = ""]) => [at, ...line.trim().split(/ +/)],
        ),
      );
      expect(headings.length).to.be.greaterThan(0);
      for (const [at, ...heading] of headings) expect(heading, at).to.deep.equal(titles);
    });

  it("show a run as its lines tell it", () => {
    const { out, take } = writtenText();
    const view = createPlainView({ out, color: false, detail: "brief" });
    const install = { node: "n1", stage, step: "tools/2", title: "install tool", module: "package.installed" } as const;
    const [os, issue, tool] = steps("n1", [
      { title: "operating system", duration: 100 },
      {
        title: "issue file",
        outcome: "changed",
        duration: 100,
        changes: [{ name: "mode", have: "0600", want: "0644" }],
      },
      failure,
    ]) as [RunEventBody, RunEventBody, RunEventBody];
    const fingerprint = "SHA256:Bdr19NCmIbVSg0dob8YmK17xh/rPQQc4SFF3QLMElD0";
    const events: readonly RunEventBody[] = [
      started,
      { type: "node.connected", node: "n1", fingerprint } as const,
      os,
      issue,
      { type: "step.started", ...install },
      { type: "step.output", node: "n1", step: "tools/2", stream: "out", text: "Reading package lists...\n" },
      tool,
      { type: "node.finished", node: "n1", outcome: "failed" },
    ];
    for (const event of stamped(events)) view.draw(event);
    const text = take();
    expect(fits(text, shown("docs/reading-a-run.md", "→ state apply web")), text).to.equal(true);
  });

  it("show a run's end", () => {
    const times = (count: number, end: object) => Array.from({ length: count }, () => end);
    const changed = (title: string) => ({ outcome: "changed", title });
    const events = stamped([
      started,
      ...steps("n1", [changed("issue file"), changed("chrony"), ...times(25, {})]),
      ...steps("n2", [changed("issue file"), ...times(11, {}), failure, ...times(4, { outcome: "skipped" })]),
      { type: "node.finished", node: "n1", outcome: "done" },
      { type: "node.finished", node: "n2", outcome: "failed" },
      { type: "stage.finished", stage, outcome: "failed" },
      { type: "run.finished", outcome: "failed", exitCode: 1 },
    ]).map((event, index) => (index === 0 ? { ...event, at: event.at - 43_000 } : event));
    const model = reduceEvents(events);
    const digest = digestRun(model, {
      id: runId,
      state: "failed",
      who: "op@bastion",
      command: model.command,
      created: model.startedAt,
      logOf: (node = "bastion") => `.kcore/runs/${runId}/nodes/${node}.log`,
    });
    const text = drawDigest(digest, { isEnd: true, sourceLine: () => "    package.installed: { name: nope }" });
    expect(`${shown("docs/reading-a-run.md", "Steps: 39 succeeded").join("\n")}\n`, text).to.equal(`${text}\n`);
  });

  it("show the answers of kcore exec", () => {
    const answer = { outcome: "done", exitCode: 0, stderr: "" } as const;
    const gone = {
      node: "n3",
      outcome: "unreachable",
      stdout: "",
      stderr: "",
      problem: {
        code: "HOST_UNREACHABLE",
        message: "n3 cannot be reached at 192.0.2.13 port 22: connect ECONNREFUSED 192.0.2.13:22",
        hint: "nothing listens there: is sshd running, and is this its port?",
      },
    } as const;
    const grouped = drawGroups(
      ["6.12.48+deb13-amd64", "6.12.48+deb13-amd64", "6.1.0-40-amd64", "6.12.48+deb13-amd64"].map((release, index) => ({
        node: `n${index + 1}`,
        stdout: `${release}\n`,
        ...answer,
      })),
    );
    const lines = shown("docs/reading-a-run.md", "$ kcore exec").join("\n");
    expect(lines).to.contain(`\n${drawFailedAnswers([gone])}$ kcore exec`);
    expect(`${lines}\n`).to.contain(`\n${grouped.out}`);
  });

  it("show the statistics of runs", () => {
    const stats = new RunStats();
    const created = [1, 2, 3].map((day) => Date.UTC(2026, 10, day));
    const end = (title: string, node: string, seconds: number, outcome: "changed" | "failed" = "changed") =>
      steps(node, [{ title, outcome, duration: seconds * 1000, module: modules[title as keyof typeof modules] }])[0];
    const modules = { "data disk": "disk.partitioned", nix: "nix.installed", tools: "package.installed" } as const;
    for (const [index] of created.entries()) {
      stats.begin(`2026110${index + 1}-061500-000${index + 1}`);
      const events = ["n1", "n2"].flatMap((node, more) => [
        end("data disk", node, 2 + more / 10),
        end("nix", node, 40 + more * 3 + index),
        end("tools", node, 12 + index, index === 1 && node === "n1" ? "failed" : "changed"),
        { type: "node.finished", node, outcome: index === 1 && node === "n1" ? "failed" : "done" } as const,
      ]);
      for (const event of stamped(events as RunEventBody[])) stats.add(event);
    }
    const drawn = drawStats(created, stats.result());
    expect(shown("docs/reading-a-run.md", "$ kcore runs stats").slice(1).join("\n"), drawn).to.equal(drawn.trimEnd());
  });

  it("show kcore top as it is drawn", () => {
    const frames = readFileSync(join(root, "test/fixtures/frames/fleet.txt"), "utf8").split("\n");
    const missing = shown("docs/day-2.md", "kcore top  context").filter((line) => !frames.includes(line));
    expect(missing).to.deep.equal([]);
  });
});
