import { expect } from "chai";
import fc from "#support/properties.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import { outcomes } from "#engine/session/step-record.ts";
import { lineWidth, paintLine } from "#tui/ink/text.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";
import { asciiTheme, colourTheme, plainTheme, sceneOf, typeKeys } from "#support/scenes.ts";
import { runStarted } from "#support/run-started.ts";

const anyText = fc.oneof(
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
const problem = fc.record({
  code: fc.constant("STEP_FAILED" as const),
  message: anyText,
  hint: anyText,
  detail: anyText,
});

const of = <Type extends RunEventBody["type"], Fields extends object>(
  type: Type,
  fields: { readonly [Name in keyof Fields]: fc.Arbitrary<Fields[Name]> },
) => fc.record({ type: fc.constant(type), ...fields }) as fc.Arbitrary<{ type: Type } & Fields>;
const ofStep = { node, stage: anyText, step, title: anyText, module: anyText };
const end = fc.constantFrom("done", "failed", "unreachable", "interrupted", "not-started");
const change = fc.record({ name: anyText, have: anyText, want: anyText });
const changes = fc.array(change, { maxLength: 3 });
const kind = fc.constantFrom("confirm", "password");
const body = fc.oneof(
  of("node.connecting", { node, attempt: fc.nat(9) }),
  of("node.waiting", { node, reason: anyText }),
  of("node.disconnected", { node, reason: anyText }),
  of("node.milestone", { node, milestone: anyText }),
  of("node.finished", { node, outcome: end, problem }),
  of("step.started", ofStep),
  of("step.note", { node, step, text: anyText }),
  of("step.output", { node, step, stream: fc.constant("out"), text: anyText }),
  of("step.finished", {
    ...ofStep,
    outcome,
    problem,
    diff: anyText,
    reason: anyText,
    changes,
    duration: fc.nat(1_000_000),
  }),
  of("action.started", { stage: fc.constant("a"), action: anyText, item: node }),
  of("warning", { text: anyText }),
  of("question.asked", { question: fc.record({ id: fc.constant("q"), kind, text: anyText, secret: fc.boolean() }) }),
  of("run.stopping", { how: fc.constantFrom("stop", "abort"), by: anyText }),
) as fc.Arbitrary<RunEventBody>;

const started: RunEventBody = runStarted({
  title: "deploy_node",
  command: "kcore orchestrate deploy_node n1",
  nodes: ["n1", "n2", "węzeł-3"],
  stages: ["a", "b"].map((id) => ({ id, title: id, nodes: ["n1", "n2"] })),
  dryRun: true,
});

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

describe("a frame of the live view", () => {
  it("S-4: has the terminal's height, no wider line, and no control characters but the theme's colours", () => {
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
          const lines = scene.lines.map((line) => paintLine(line, at.columns, theme));
          const isTiny = at.columns < 40 || at.rows < 8;
          expect(lines.length).to.equal(isTiny ? 1 : at.rows);
          for (const line of lines) {
            // The text without the theme's own colours.
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
    it(`of the recorded run ${name} has the terminal's height at any event`, () => {
      const events = recordedRun(name);
      for (let count = 0; count <= events.length; count += Math.ceil(events.length / 12)) {
        const [columns, rows] = [40 + ((count * 7) % 120), 8 + ((count * 3) % 50)];
        expect(sceneOf(events.slice(0, count), { columns, rows }).lines).to.have.length(rows);
      }
    });
});
