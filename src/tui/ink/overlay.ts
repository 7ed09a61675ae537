import type { RunModel } from "#engine/events/run-model.ts";
import { ownProblems } from "../tally.ts";
import { helpLines } from "./keys.ts";
import { scrolledText } from "./blocks.ts";
import { runKeys } from "./footer.ts";
import type { RunUi } from "./run-ui.ts";
import type { Extent, SceneProps } from "./scene.ts";
import { stageList } from "./stages.ts";
import { span, wrapParts, wrapWords, type Line, justify } from "./text.ts";
import type { TextRole, Theme } from "./theme.ts";
import { changeLines, diffLines } from "./item-body.ts";
import { planOf, dryRunTotal, formatNodes, type DryRunStep, type DryRunPlan } from "../dry-run-plan.ts";

/** A page over the nodes: the keys, all stages, all warnings, the plan of a dry run. */
export interface Overlay {
  readonly lines: readonly Line[];
  readonly ui: RunUi;
  readonly page: Extent;
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
    foresight: () => dryRunLines(model, theme, width),
  }[ui.overlay ?? "help"]();
  const title = { help: "keys", stages: "stages", warnings: "warnings", foresight: "changes that it would make" }[
    ui.overlay ?? "help"
  ];
  const { top, lines } = scrolledText(
    [span(title, "accent")],
    content,
    { top: ui.overlayTop, room, width },
    theme.glyphs,
  );
  return { lines, ui: { ...ui, overlayTop: top }, page: { list: Math.max(1, room - 1), body: 1, count: 0 } };
}

function legend({ glyphs }: Theme, width: number): readonly Line[] {
  const { ok, changed, wouldChange, failed, skipped, unknown, interrupted, pending, warning, running } = glyphs;
  const shapes: readonly (readonly [string, string, TextRole])[] = [
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

/** One line: the problem that stopped the run, else the newest warning and the number of warnings; empty without both. */
export function troubleLines(model: RunModel, { glyphs }: Theme): readonly Line[] {
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

/** Most lines of a diff in the plan; the step itself shows the whole diff. */
const mostDiffLines = 40;

/** The plan of a dry run: each change with its diff, once for all nodes with the same change; then unknown steps with their reasons. */
export function dryRunLines(model: RunModel, theme: Theme, width: number): readonly Line[] {
  const { changes, unknown } = plans.get(model) ?? rememberPlan(model);
  if (changes.length + unknown.length === 0) return [[span("  nothing would change: all is in order", "ok")]];
  return [
    [span(` ${dryRunTotal(model)}`, "strong")],
    [],
    ...changes.flatMap((one) => [
      stepHead(one, theme.glyphs.wouldChange, theme, width),
      ...reasonLines(one, width),
      ...changeBody(one, theme, width),
      [],
    ]),
    ...(unknown.length > 0 ? [[span(" unknown until earlier steps are applied", "accent")]] : []),
    ...unknown.flatMap((one) => [stepHead(one, theme.glyphs.unknown, theme, width), ...reasonLines(one, width)]),
  ];
}

// Cached: a model never changes, and each key draws the overlay again.
const plans = new WeakMap<RunModel, DryRunPlan>();

function rememberPlan(model: RunModel): DryRunPlan {
  const plan = planOf(model);
  plans.set(model, plan);
  return plan;
}

function stepHead({ stage, title, module, nodes }: DryRunStep, mark: string, { glyphs }: Theme, width: number): Line {
  const name = stage === title ? title : `${stage}: ${title}`;
  const left: Line = [
    span(" "),
    span(mark, "changed"),
    span(` ${name}`, "strong"),
    ...(module === title ? [] : [span(`  ${module}`, "muted")]),
  ];
  return justify(left, [span(`${formatNodes(nodes)} `, "muted")], width, glyphs);
}

/** The reason why the step is unknown, or the condition of its change. */
function reasonLines({ reason }: DryRunStep, width: number): readonly Line[] {
  if (reason === undefined) return [];
  return wrapWords(reason, width - 6).map((line): Line => [span("     "), span(line, "muted")]);
}

/** The diff, then the other changes. */
function changeBody({ changes, diff }: DryRunStep, theme: Theme, width: number): readonly Line[] {
  const lines = diff === undefined ? [] : diffLines(diff, width);
  const rest = lines.length - mostDiffLines;
  return [
    ...lines.slice(0, mostDiffLines),
    ...(rest > 0 ? [[span(`   ${theme.glyphs.ellipsis} ${rest} more lines: open the step`, "muted")] as Line] : []),
    ...(changes.length > 0 ? changeLines(changes, theme, width) : []),
  ];
}
