import { stripVTControlCharacters } from "node:util";
import type { RunEvent } from "#engine/events/event.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { pressKey } from "#tui/ink/run-keys.ts";
import { freshUi, type RunUi } from "#tui/ink/run-ui.ts";
import { arrange } from "#tui/ink/arrange-run.ts";
import type { Scene, SceneProps } from "#tui/ink/scene.ts";
import { paintLine } from "#tui/ink/text.ts";
import { createTheme, type Theme } from "#tui/ink/theme.ts";

/** A theme with shapes and without colours. */
export const plainTheme: Theme = createTheme({ depth: 0, background: "unknown", unicode: true });
export const asciiTheme: Theme = createTheme({ depth: 0, background: "unknown", unicode: false });
export const colourTheme: Theme = createTheme({ depth: 256, background: "dark", unicode: true });

export interface SceneOptions extends Partial<Omit<SceneProps, "model">> {
  readonly columns?: number;
  readonly rows?: number;
}

/** The live view of a run after these events; `now` is by default the last event's time. */
export function sceneOf(events: readonly RunEvent[], options: SceneOptions = {}): Scene {
  const { columns = 80, rows = 24, ...more } = options;
  const model = reduceEvents(events);
  return arrange({
    model,
    ui: freshUi,
    size: { columns, rows },
    theme: plainTheme,
    now: model.lastAt,
    real: model.lastAt,
    project: "/srv/demo",
    ...more,
  });
}

/** The lines of a frame as text: without the theme's sequences and without trailing blanks. */
export function linesOf(scene: Scene, { columns = 80, theme = plainTheme }: SceneOptions = {}): readonly string[] {
  return scene.lines.map((line) => stripVTControlCharacters(paintLine(line, columns, theme)).trimEnd());
}

/** The view's settings after these keys: names as `KeyPress` has them, other texts are typed. */
export function typeKeys(events: readonly RunEvent[], keys: readonly string[], options: SceneOptions = {}): RunUi {
  return keys.reduce<RunUi>((ui, name) => {
    const scene = sceneOf(events, { ...options, ui });
    const text = name === "space" ? " " : name.length === 1 ? name : "";
    return pressKey(scene, { name, text }).ui;
  }, options.ui ?? freshUi);
}
