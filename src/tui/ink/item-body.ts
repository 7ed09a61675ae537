import { formatDuration } from "#base/units.ts";
import type { Change } from "#engine/events/event.ts";
import type { Problem } from "#errors/problem.ts";
import { causeFirst, endOfDetail } from "../cause-line.ts";
import { quietOf, type WorkItem, outcomeLabel } from "../work-item.ts";
import { outcomeMark } from "./marks.ts";
import { quietSpans } from "./node-table.ts";
import { finder, outputRows, type OutputRow } from "./output-rows.ts";
import type { SceneProps } from "./scene.ts";
import { takeColumns, widthOf } from "#base/text.ts";
import { span, oneLine, wrapText, wrapWords, type Line } from "./text.ts";
import type { Glyphs, TextRole, Theme } from "./theme.ts";

/** Most lines of a problem's detail above the step's output, which repeats them. */
const mostDetailLines = 6;

export interface BodyProps extends Pick<SceneProps, "theme" | "now" | "usual"> {
  readonly item: WorkItem;
  readonly width: number;
  /** Whether long lines of a diff and of the output continue in the next row. */
  readonly wrap: boolean;
  /** The searched text; empty: no search. */
  readonly find: string;
}

/** The lines above a step's texts: outcome, time and reason; module and position in its file; note. */
export function itemHead({ item, theme: { glyphs }, now, usual }: Omit<BodyProps, "wrap" | "find">): readonly Line[] {
  const { outcome, duration, always, reason, position, module, note } = item;
  const time = outcome === undefined ? now - item.startedAt : (duration ?? 0);
  const took = time >= 50 ? ` ${outcome === undefined ? "for" : "in"} ${formatDuration(time)}` : "";
  const mark = outcomeMark(outcome, glyphs, now);
  const lines: Line[] = [
    [
      span(" "),
      mark,
      span(` ${outcomeLabel(outcome, always)}`, mark.role),
      span(took),
      ...(reason === undefined ? [] : [span(`  (${reason})`, "muted")]),
      ...quietSpans(quietOf(item, now, usual), glyphs, now),
    ],
    [
      span(`   ${module}`, "muted"),
      ...(position ? [span(`  ${glyphs.dot}  ${position.file}:${position.line}:${position.column}`, "muted")] : []),
    ],
  ];
  return note === undefined ? lines : [...lines, [span("   "), span(note, "accent")]];
}

/** The texts of an item below its head: the fixed part, then the output. */
interface Story {
  readonly before: readonly Line[];
  readonly output: readonly OutputRow[];
}

interface DrawnStory extends Story, Pick<BodyProps, "width" | "theme" | "wrap" | "find"> {}
// Cached: an item never changes, and a diff may have thousands of lines.
const stories = new WeakMap<WorkItem, DrawnStory>();

/** Problem, changes and diff; then the end of the output. */
export function itemStory({ item, theme, width, wrap, find }: BodyProps): Story {
  const known = stories.get(item);
  if (known && known.width === width && known.theme === theme && known.wrap === wrap && known.find === find)
    return known;
  const { problem, changes, diff, tail, streams } = item;
  const parts = [
    // With output below, the detail is cut, because the output has all of it.
    problem
      ? problemLines(
          causeFirst(tail.trim() === "" ? problem : endOfDetail(problem, mostDetailLines), item.exitStatus),
          item,
          theme,
          width,
        )
      : [],
    changes.length > 0 ? changeLines(changes, theme, width) : [],
    diff ? diffLines(diff, wrap ? width : Infinity) : [],
  ].filter((part) => part.length > 0);
  const before = parts.flatMap((part) => [[], ...part]);
  const rows = { width: outputWidth(width), wrap, find: finder(find) };
  const output = tail.trim() === "" ? [] : outputRows(tail, (line) => (streams?.[line] === "e" ? "err" : "out"), rows);
  const story = { width, theme, wrap, find, before, output };
  stories.set(item, story);
  return story;
}

/** A problem as lines: message, position (unless it is the step's own), detail, hint. */
export function problemLines(
  problem: Problem,
  { position }: Pick<WorkItem, "position">,
  { glyphs }: Theme,
  width: number,
): Line[] {
  const { message, code, at, hint, detail } = problem;
  const where = samePlace(at, position) ? undefined : at;
  return [
    ...hung(`${glyphs.failed} `, `${message}  [${code}]`, width, "failed"),
    ...(where ? [[span(`   ${where.file}:${where.line}:${where.column}`, "strong")]] : []),
    ...(detail ? wrapText(detail.replace(/\n+$/, ""), width - 5).map((text) => barred(glyphs.bar, text)) : []),
    ...(hint ? hung("hint: ", hint, width, "accent") : []),
  ];
}

function samePlace(a: Problem["at"], b: Problem["at"]): boolean {
  return a?.file === b?.file && a?.line === b?.line && a?.column === b?.column;
}

function barred(bar: string, text: string): Line {
  return [span(`   ${bar} `, "muted"), span(text)];
}

/** A text behind a label; further lines are indented to the text's first column. */
export function hung(label: string, text: string, width: number, role: TextRole): Line[] {
  const indent = 1 + widthOf(label);
  return wrapWords(text, width - indent - 1).map((part, index) =>
    index === 0 ? [span(` ${label}`, role), span(part)] : [span(" ".repeat(indent)), span(part)],
  );
}

/** A line for each change, with name, present and wanted value; two lines where they do not fit. */
export function changeLines(changes: readonly Change[], { glyphs }: Theme, width: number): Line[] {
  const column = Math.min(
    Math.max(...changes.map(({ name }) => widthOf(oneLine(name)))),
    Math.max(8, Math.floor(width / 3)),
  );
  return changes.flatMap(({ name, have, want }) => {
    const label = takeColumns(oneLine(name), column);
    const start: Line = [span(`   ${label}${" ".repeat(Math.max(0, column - widthOf(label)))}  `, "muted")];
    const before = have === undefined ? "(absent)" : factText(have, glyphs);
    const after = factText(want, glyphs);
    const arrow = ` ${glyphs.arrow} `;
    if (column + 6 + widthOf(before) + widthOf(arrow) + widthOf(after) <= width)
      return [[...start, span(before, "removed"), span(arrow, "muted"), span(after, "added")]];
    const indent = " ".repeat(column + 5);
    return [
      [...start, span(before, "removed")],
      [span(`${indent.slice(widthOf(arrow))}${arrow}`, "muted"), span(after, "added")],
    ];
  });
}

/** The first line of a fact, and the number of its lines: a fact may be a whole file. */
function factText(value: string, { ellipsis }: Glyphs): string {
  if (value === "") return "(empty)";
  const lines = value.replace(/\n$/, "").split("\n");
  const first = oneLine(lines[0] ?? "");
  return lines.length > 1 ? `${first} ${ellipsis} (${lines.length} lines)` : first;
}

/** The lines of a diff, coloured by their signs and wrapped. */
export function diffLines(diff: string, width: number): Line[] {
  return diff
    .replace(/\n$/, "")
    .split("\n")
    .flatMap((line) => {
      const role = roleOfDiff(line);
      return wrapText(line, width - 4).map((text): Line => [span("   "), span(text, role)]);
    });
}

/** The sign at the start of a line has the same meaning as its colour. */
function roleOfDiff(line: string): TextRole {
  if (line.startsWith("+++") || line.startsWith("---")) return "strong";
  if (line.startsWith("@@")) return "accent";
  if (line.startsWith("+")) return "added";
  return line.startsWith("-") ? "removed" : "plain";
}

/** The columns for output in a pane of this width. */
export function outputWidth(width: number): number {
  return Math.max(1, width - 6);
}
