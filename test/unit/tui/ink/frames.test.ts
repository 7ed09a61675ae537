import { createElement as h } from "react";
import { Lines } from "#tui/ink/screen.ts";
import { describeFrames } from "#support/frames.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";
import { asciiTheme, colourTheme, plainTheme, sceneOf, typeKeys, type SceneOptions } from "#support/scenes.ts";

interface Variant extends SceneOptions {
  /** The share of the run's events that the frame shows. */
  readonly share: number;
  readonly keys?: readonly string[];
}

const variants: Readonly<Record<string, Variant>> = {
  "80x24, halfway": { share: 0.5 },
  "80x24, three quarters": { share: 0.75 },
  "80x24, at the end": { share: 1 },
  "80x24, a node": { share: 1, keys: ["enter"] },
  "80x24, ASCII": { share: 0.75, theme: asciiTheme },
  "80x24, in colour": { share: 0.75, theme: colourTheme },
  "60x15, three quarters": { share: 0.75, columns: 60, rows: 15 },
  "60x15, a node": { share: 1, columns: 60, rows: 15, keys: ["enter"] },
  "150x20, three quarters": { share: 0.75, columns: 150, rows: 20 },
};

/** For each run the frames that no other run has; frames.property.test.ts draws all runs at many events. */
const framesOf: Readonly<Record<string, readonly string[]>> = {
  "deploy-three": ["80x24, three quarters", "80x24, a node", "60x15, a node", "150x20, three quarters"],
  done: ["80x24, at the end"],
  failed: ["80x24, at the end", "80x24, a node", "80x24, in colour"],
  resumed: ["80x24, halfway"],
  refused: ["80x24, at the end"],
  questions: ["80x24, halfway", "60x15, three quarters"],
  "dry-run": ["80x24, at the end"],
  "dry-run-refused": ["80x24, ASCII"],
};

for (const name of recordedRunNames)
  describe(`the frames of the recorded run ${name}`, () => {
    describeFrames(name, framesOf[name] ?? [], (title) => {
      const { share, keys = [], ...options } = variants[title] as Variant;
      const { columns = 80, theme = plainTheme } = options;
      const events = recordedRun(name);
      const drawn = events.slice(0, Math.ceil(events.length * share));
      const { lines } = sceneOf(drawn, { ...options, theme, ui: typeKeys(drawn, keys, options) });
      const element = h(Lines, { lines, width: columns, theme });
      return { element, columns, isColoured: theme.depth > 0 };
    });
  });
