import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { renderToString } from "ink";
import { createElement as h } from "react";
import { RunScreen } from "#tui/ink/run-screen.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";
import { asciiTheme, colourTheme, plainTheme, sceneOf, typeKeys, type SceneOptions } from "#support/scenes.ts";

const folder = join(import.meta.dirname, "../../../fixtures/frames");
/** `UPDATE_FRAMES=1 npx mocha test/unit/tui/ink/frames.test.ts` writes them anew: look at the difference. */
const isUpdating = process.env["UPDATE_FRAMES"] === "1";

interface Variant extends SceneOptions {
  /** Share of the run's events that have come. */
  readonly share: number;
  readonly keys?: readonly string[];
}

const variants: Readonly<Record<string, Variant>> = {
  "80x24, halfway": { share: 0.5 },
  "80x24, three quarters": { share: 0.75 },
  "80x24, at the end": { share: 1 },
  "80x24, a node": { share: 1, keys: ["enter"] },
  "80x24, ASCII": { share: 0.75, theme: asciiTheme },
  "80x24, a node, ASCII": { share: 1, keys: ["enter"], theme: asciiTheme },
  "80x24, NO_COLOR with bold and dim": { share: 0.75 },
  "80x24, in colour": { share: 0.75, theme: colourTheme },
  "60x15, three quarters": { share: 0.75, columns: 60, rows: 15 },
  "60x15, a node": { share: 1, columns: 60, rows: 15, keys: ["enter"] },
  "200x60, three quarters": { share: 0.75, columns: 200, rows: 60 },
  "200x60, a node": { share: 1, columns: 200, rows: 60, keys: ["enter"] },
};

/** The frame as ink lays it out; escape characters are written so that a difference can be read. */
function frame(name: string, title: string): string {
  const { share, keys = [], ...options } = variants[title] as Variant;
  const { columns = 80, rows = 24, theme = plainTheme } = options;
  const events = recordedRun(name);
  const come = events.slice(0, Math.ceil(events.length * share));
  const scene = sceneOf(come, { ...options, theme, ui: typeKeys(come, keys, options) });
  const drawn = renderToString(h(RunScreen, { scene, size: { columns, rows }, theme }), { columns });
  const shown =
    title.includes("COLOR") || theme.depth > 0 ? drawn.replaceAll("\u001b", "␛") : stripVTControlCharacters(drawn);
  return shown
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}

/** The frames of a file by their titles. */
function readFrames(file: string): ReadonlyMap<string, string> {
  const text = isUpdating ? "" : readFileSync(file, "utf8");
  return new Map(
    text
      .split(/^=== /m)
      .slice(1)
      .map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1, -1)]),
  );
}

for (const name of recordedRunNames)
  describe(`the frames of the recorded run ${name}`, () => {
    const file = join(folder, `${name}.txt`);
    const known = readFrames(file);
    const drawn = new Map<string, string>();
    for (const title of Object.keys(variants))
      it(`are as they were looked at: ${title}`, () => {
        drawn.set(title, frame(name, title));
        if (!isUpdating) expect(drawn.get(title)).to.equal(known.get(title));
      });
    after(() => {
      if (isUpdating) writeFileSync(file, [...drawn].map(([title, text]) => `=== ${title}\n${text}\n`).join(""));
    });
  });
