import type { RunModel } from "#engine/events/run-model.ts";
import { ownProblems } from "../tally.ts";
import { foresightLines } from "./foresight.ts";
import { helpLines } from "./keys.ts";
import { scrolled } from "./blocks.ts";
import { runKeys } from "./run-help.ts";
import type { RunUi } from "./run-ui.ts";
import type { Page, SceneProps } from "./scene.ts";
import { stageList } from "./stages.ts";
import { span, wrapParts, wrapWords, type Line } from "./text.ts";
import type { Role, Theme } from "./theme.ts";

/** A page over the nodes: the keys, all stages, all warnings, the plan of a dry run. */
export interface Overlay {
  readonly lines: readonly Line[];
  readonly ui: RunUi;
  readonly page: Page;
}

export function arrangeOverlay(props: SceneProps, width: number, room: number): Overlay {
  const { ui, theme, model, now, player } = props;
  const content = {
    help: () => [
      ...helpLines(runKeys(ui, theme.glyphs, { replay: player !== undefined }), width),
      [],
      ...legend(theme, width),
    ],
    stages: () => stageList({ model, theme, width, now }),
    warnings: () => allWarnings(model, theme, width),
    foresight: () => foresightLines(model, theme, width),
  }[ui.overlay ?? "help"]();
  const title = { help: "keys", stages: "stages", warnings: "warnings", foresight: "what would change" }[
    ui.overlay ?? "help"
  ];
  const { top, lines } = scrolled([span(title, "accent")], content, { top: ui.overlayTop, room, width }, theme.glyphs);
  return { lines, ui: { ...ui, overlayTop: top }, page: { list: Math.max(1, room - 1), body: 1, count: 0 } };
}

/** The meaning of the shapes. */
function legend({ glyphs }: Theme, width: number): readonly Line[] {
  const { ok, changed, wouldChange, failed, skipped, unknown, interrupted, pending, warning, running } = glyphs;
  const shapes: readonly (readonly [string, string, Role])[] = [
    [ok, "in order", "ok"],
    [changed, "changed", "changed"],
    [wouldChange, "would change", "changed"],
    [failed, "failed", "failed"],
    [running[0] ?? "", "running", "running"],
    [pending, "waits for its turn", "muted"],
    [skipped, "skipped", "muted"],
    [unknown, "unknown before earlier steps are applied", "warning"],
    [interrupted, "interrupted", "warning"],
    [warning, "look here", "warning"],
  ];
  return wrapParts(
    shapes.map(([shape, word, role]) => [span(shape, role), span(` ${word}`, "muted")]),
    { gap: 3, width },
  );
}

/** The problem that stopped the run, else the newest warning and the number of warnings. */
export function warningLines(model: RunModel, { glyphs }: Theme): readonly Line[] {
  const { warnings } = model;
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
