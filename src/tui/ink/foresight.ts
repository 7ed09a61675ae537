import type { RunModel } from "#engine/events/run-model.ts";
import { foresee, foreseenSum, tellNodes, type Foreseen, type Foresight } from "../foreseen.ts";
import { changeLines, diffLines } from "./item-body.ts";
import { justify, span, wrapWords, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

/** Most lines of a diff here; the step itself shows all of it. */
const DIFF = 40;

/** The plan of a dry run: each change with its diff, once for all nodes with the same change; then unknown steps with their reasons. */
export function foresightLines(model: RunModel, theme: Theme, width: number): readonly Line[] {
  const { changes, unknown } = known.get(model) ?? keep(model);
  if (changes.length + unknown.length === 0) return [[span("  nothing would change: all is in order", "ok")]];
  return [
    [span(` ${foreseenSum(model)}`, "strong")],
    [],
    ...changes.flatMap((one) => [
      headOf(one, theme.glyphs.wouldChange, theme, width),
      ...reasonOf(one, width),
      ...bodyOf(one, theme, width),
      [],
    ]),
    ...(unknown.length > 0 ? [[span(" unknown until earlier steps are applied", "accent")]] : []),
    ...unknown.flatMap((one) => [headOf(one, theme.glyphs.unknown, theme, width), ...reasonOf(one, width)]),
  ];
}

// The overlay is drawn anew with each key; the run has ended.
const known = new WeakMap<RunModel, Foresight>();

function keep(model: RunModel): Foresight {
  const found = foresee(model);
  known.set(model, found);
  return found;
}

function headOf({ stage, title, module, nodes }: Foreseen, mark: string, { glyphs }: Theme, width: number): Line {
  const name = stage === title ? title : `${stage}: ${title}`;
  const left: Line = [
    span(" "),
    span(mark, "changed"),
    span(` ${name}`, "strong"),
    ...(module === title ? [] : [span(`  ${module}`, "muted")]),
  ];
  return justify(left, [span(`${tellNodes(nodes)} `, "muted")], width, glyphs);
}

/** The reason why the step is unknown, or the condition of its change. */
function reasonOf({ reason }: Foreseen, width: number): readonly Line[] {
  if (reason === undefined) return [];
  return wrapWords(reason, width - 6).map((line): Line => [span("     "), span(line, "muted")]);
}

/** The diff first, then the other changes. */
function bodyOf({ changes, diff }: Foreseen, theme: Theme, width: number): readonly Line[] {
  const lines = diff === undefined ? [] : diffLines(diff, width);
  const rest = lines.length - DIFF;
  return [
    ...lines.slice(0, DIFF),
    ...(rest > 0 ? [[span(`   ${theme.glyphs.ellipsis} ${rest} more lines: open the step`, "muted")] as Line] : []),
    ...(changes.length > 0 ? changeLines(changes, theme, width) : []),
  ];
}
