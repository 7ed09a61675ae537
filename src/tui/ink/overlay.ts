import type { RunModel } from "#engine/events/model.ts";
import { ownProblems } from "../summary.ts";
import { helpLines } from "./keys.ts";
import { panelRule } from "./panels.ts";
import { runKeys } from "./run-help.ts";
import type { RunUi } from "./run-ui.ts";
import type { SceneProps } from "./scene.ts";
import { windowAround } from "./scroll.ts";
import { stageList } from "./stages.ts";
import { span, wrapWords, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/** What lies over the nodes for a moment: the keys, all stages, all warnings. */
export interface Overlay {
  readonly lines: readonly Line[];
  readonly ui: RunUi;
  readonly page: { readonly list: number; readonly body: number };
}

export function arrangeOverlay(props: SceneProps, width: number, room: number): Overlay {
  const { ui, theme, model, now, player } = props;
  const content = {
    help: () => helpLines(runKeys(ui, theme.glyphs, { replay: player !== undefined }), width, theme.glyphs),
    stages: () => stageList({ model, theme, width, now }),
    warnings: () => allWarnings(model, theme, width),
  }[ui.overlay ?? "help"]();
  const { top, end } = windowAround(content.length, room - 1, ui.overlayTop);
  const title = { help: "keys", stages: "stages", warnings: "warnings" }[ui.overlay ?? "help"];
  const more = end < content.length ? `, ${content.length - end} more below` : "";
  return {
    lines: [panelRule(`${title}${more}`, theme, width), ...content.slice(top, end)],
    ui: { ...ui, overlayTop: top },
    page: { list: Math.max(1, room - 1), body: 1 },
  };
}

/** Why the run itself could not go on, else the newest warning and how many there are. */
export function warningLines(model: RunModel, { glyphs }: Theme): readonly Line[] {
  const { warnings } = model;
  // Most of the time there is none, and what was told already need not be looked for.
  const own = model.problems.length > 0 ? ownProblems(model)[0] : undefined;
  if (own) return [[span(` ${glyphs.failed} `, "failed"), span(`${own.message}  [${own.code}]`)]];
  const last = warnings.at(-1);
  if (!last) return [];
  const more = warnings.length > 1 ? ` (${warnings.length} warnings, w shows all)` : "";
  return [
    [
      span(` ${glyphs.warning} `, "warning"),
      span(`${last.node === undefined ? "" : `${last.node}: `}${last.text}`),
      span(more, "muted"),
    ],
  ];
}

function allWarnings({ warnings }: RunModel, { glyphs }: Theme, width: number): readonly Line[] {
  if (warnings.length === 0) return [[span("  no warnings", "muted")]];
  return warnings.flatMap(({ node, text }) =>
    wrapWords(`${node === undefined ? "" : `${node}: `}${text}`, width - 4).map((part, index): Line => [
      span(index === 0 ? ` ${glyphs.warning} ` : "   ", "warning"),
      span(part),
    ]),
  );
}
