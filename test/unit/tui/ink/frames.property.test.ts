import { expect } from "chai";
import fc from "#support/properties.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { outcomes } from "#engine/session/step-record.ts";
import { lineWidth, paintLine } from "#tui/ink/text.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";
import { asciiTheme, colourTheme, plainTheme, sceneOf, typeKeys } from "#support/scenes.ts";

const nasty = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 60 }),
  fc.constantFrom(
    "\u001b[2J\u001b[H",
    "漢字かな交じり文",
    "e\u0301\u0302\u0303",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "a\tb\nc\r\nd",
    "\u202eevil",
    "x".repeat(300),
    "",
  ),
);
const node = fc.constantFrom("n1", "n2", "węzeł-3", "長い名前のノード".repeat(3));
const step = fc.constantFrom("a/1", "a/2", "b/3");
const outcome = fc.constantFrom(...outcomes.values());
const problem = fc.record({ code: fc.constant("STEP_FAILED" as const), message: nasty, hint: nasty, detail: nasty });

const body: fc.Arbitrary<RunEventBody> = fc.oneof(
  fc.record({ type: fc.constant("node.connecting" as const), node, attempt: fc.nat(9) }),
  fc.record({ type: fc.constant("node.waiting" as const), node, reason: nasty }),
  fc.record({ type: fc.constant("node.disconnected" as const), node, reason: nasty }),
  fc.record({ type: fc.constant("node.milestone" as const), node, milestone: nasty }),
  fc.record({
    type: fc.constant("node.finished" as const),
    node,
    outcome: fc.constantFrom("done", "failed", "unreachable", "interrupted", "not-started"),
    problem,
  }),
  fc.record({ type: fc.constant("step.started" as const), node, stage: nasty, step, title: nasty, module: nasty }),
  fc.record({ type: fc.constant("step.note" as const), node, step, text: nasty }),
  fc.record({
    type: fc.constant("step.output" as const),
    node,
    step,
    stream: fc.constant("out" as const),
    text: nasty,
  }),
  fc.record({
    type: fc.constant("step.finished" as const),
    node,
    stage: nasty,
    step,
    title: nasty,
    module: nasty,
    outcome,
    problem,
    diff: nasty,
    reason: nasty,
    changes: fc.array(fc.record({ name: nasty, have: nasty, want: nasty }), { maxLength: 3 }),
    duration: fc.nat(1_000_000),
  }),
  fc.record({ type: fc.constant("action.started" as const), stage: fc.constant("a"), action: nasty, item: node }),
  fc.record({ type: fc.constant("warning" as const), text: nasty }),
  fc.record({
    type: fc.constant("question.asked" as const),
    question: fc.record({
      id: fc.constant("q"),
      kind: fc.constantFrom("confirm", "password"),
      text: nasty,
      secret: fc.boolean(),
    }),
  }),
  fc.record({ type: fc.constant("run.stopping" as const), how: fc.constantFrom("stop", "abort"), by: nasty }),
);

const started: RunEventBody = {
  type: "run.started",
  runId: "r1",
  title: "deploy_node",
  command: "kcore orchestrate deploy_node n1",
  nodes: ["n1", "n2", "węzeł-3"],
  stages: ["a", "b"].map((id) => ({ id, title: id, nodes: ["n1", "n2"] })),
  dryRun: true,
  who: "ops@bastion",
};

const keys = fc.constantFrom(
  "enter",
  "escape",
  "j",
  "k",
  "G",
  "pagedown",
  "pageup",
  "/",
  "?",
  "s",
  "w",
  "f",
  "m",
  "n",
  "tab",
  "x",
  "o",
);
const size = fc.record({ columns: fc.integer({ min: 1, max: 220 }), rows: fc.integer({ min: 1, max: 70 }) });
const themes = fc.constantFrom(plainTheme, asciiTheme, colourTheme);

describe("any frame", () => {
  it("is exactly as high as the terminal, and no line is wider; nothing but the theme colours it (S-4)", () => {
    fc.assert(
      fc.property(
        fc.array(body, { maxLength: 25 }),
        size,
        fc.array(keys, { maxLength: 6 }),
        themes,
        (bodies, at, pressed, theme) => {
          const events = [started, ...bodies].map((one, index): RunEvent => ({
            seq: index + 1,
            at: 1000 + index,
            ...one,
          }));
          const options = { ...at, theme, now: 90_000, paces: [{ nodes: 3, ends: [], whole: 120_000 }] };
          const scene = sceneOf(events, { ...options, ui: typeKeys(events, pressed, options) });
          const lines = scene.parts.flatMap((part) => part.lines.map((line) => paintLine(line, at.columns, theme)));
          const isTiny = at.columns < 40 || at.rows < 8;
          expect(lines.length).to.equal(isTiny ? 1 : at.rows);
          for (const line of lines) {
            // What is left without the theme's own colours.
            const text = line
              .replaceAll("\u001b[0m", "")
              .split("\u001b[")
              .map((part, index) => (index === 0 ? part : part.replace(/^[\d;]+m/, "")))
              .join("");
            expect(lineWidth([{ text }])).to.be.at.most(at.columns);
            expect(text).to.match(/^\P{Cc}*$/u);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  for (const name of recordedRunNames)
    it(`of the recorded run ${name} fits at each of its moments`, () => {
      const events = recordedRun(name);
      for (let count = 0; count <= events.length; count += Math.ceil(events.length / 12)) {
        const [columns, rows] = [40 + ((count * 7) % 120), 8 + ((count * 3) % 50)];
        const { parts } = sceneOf(events.slice(0, count), { columns, rows });
        expect(parts.reduce((sum, { lines }) => sum + lines.length, 0)).to.equal(rows);
      }
    });
});
