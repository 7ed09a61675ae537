import type { Problem } from "#errors/problem.ts";
import type { WorkItem } from "../work-item.ts";
import { hung, itemHead, itemStory, problemLines } from "./item-body.ts";
import type { PagedOutput } from "./output-pager.ts";
import { finder, hasMatch, markLine, outputLine, type OutputRow } from "./output-rows.ts";
import type { Find, RunUi } from "./run-ui.ts";
import type { SceneProps } from "./scene.ts";
import { windowAround } from "./blocks.ts";
import { span, type Line } from "./text.ts";
import type { Theme } from "./theme.ts";

interface StepBodyProps extends Pick<SceneProps, "theme" | "now" | "usual" | "isReading"> {
  readonly ui: Pick<RunUi, "follow" | "bodyTop" | "bodyShare" | "wrap" | "find">;
  /** The whole output of the item, once the pager has read it. */
  readonly output?: PagedOutput | undefined;
  /** The problem of the node itself, which is shown first. */
  readonly problem?: Problem | undefined;
  /** The reason why the node waits, which is shown first unless there is a problem. */
  readonly reason?: string | undefined;
}

/** The texts of a step, as far as there is room. */
export interface StepBody {
  readonly lines: readonly Line[];
  /** The first visible row of the body. */
  readonly top: number;
  /** As `bodyShare` of the settings, while it still counts. */
  readonly share?: number | undefined;
  /** Rows that are visible at once. */
  readonly room: number;
  /** Rows of the whole body. */
  readonly count: number;
  readonly find: Find;
  /** Rows of the body with a match; undefined while the output is being read, or without a search. */
  readonly matches?: readonly number[] | undefined;
}

/** Lays out a step's texts: its head stays; its body scrolls, and shows its end while the view follows the running step. */
export function arrangeBody(
  { ui, theme, now, usual, output, isReading = false, problem, reason }: StepBodyProps,
  item: WorkItem | undefined,
  width: number,
  room: number,
): StepBody {
  const ofNode = problem
    ? problemLines(problem, {}, theme, width)
    : reason === undefined
      ? []
      : hung(`${theme.glyphs.warning} `, reason, width, "warning");
  const none = { top: 0, room: 0, count: 0, find: ui.find };
  if (!item) return { ...none, lines: ofNode.slice(0, Math.max(0, room)) };
  if (room <= 0) return { ...none, lines: [] };
  const { wrap, find } = ui;
  const props = { item, theme, width, now, wrap, find: find.text, ...(usual ? { usual } : {}) };
  const head = [...(ofNode.length > 0 ? [...ofNode, []] : []), ...itemHead(props)].slice(0, room);
  const story = itemStory(props);
  const isWhole = output !== undefined || item.above === undefined;
  const title = span(`   output${isWhole ? "" : ": the last lines"}`, "muted");
  const before = story.output.length > 0 ? [...story.before, [], [title]] : story.before;
  const left = room - head.length;
  const isFollowing = ui.follow && item.outcome === undefined;
  const rows = Math.max(output?.rows ?? 0, story.output.length);
  const count = before.length + rows;
  const wanted = finder(find.text);
  const matches =
    wanted && !isReading
      ? [
          ...before.flatMap((line, index) => (hasMatch(line, wanted) ? [index] : [])),
          ...(output?.matches ?? rowsOfMatches(story.output)).map((row) => row + before.length),
        ]
      : undefined;
  const share = isReading ? ui.bodyShare : undefined;
  const begin = ui.bodyShare === undefined || isReading ? ui.bodyTop : Math.round(ui.bodyShare * count);
  const current = matches ? goToFirst(find, matches, begin) : find;
  const isJump = current !== find && current.row !== undefined;
  const start = isJump ? topToShow(current.row ?? 0, begin, left) : begin;
  const { top, end } = windowAround(count, left, isFollowing ? count : start);
  const [from, to] = [top, end].map((at) => Math.max(0, at - before.length)) as [number, number];
  // The end of the output comes from the model, which has it at once.
  const isTail = output === undefined || isFollowing;
  const [skipped, length] = [rows - story.output.length, to - from];
  const shown = isTail
    ? story.output.slice(Math.max(0, from - skipped), Math.max(0, to - skipped))
    : (output.slice(from, to) ?? []);
  // Empty rows while the output is being read.
  const missing = Array.from({ length: length - shown.length }, (): OutputRow => ({ text: "", stream: "out" }));
  const lines = [
    ...head,
    ...before.slice(top, end).map((line) => markLine(line, wanted)),
    ...[...missing, ...shown].map((row) => outputLine(row, theme.glyphs)),
  ];
  const at = current.row === undefined ? -1 : current.row - top;
  const isHere = at >= 0 && at < end - top && wanted !== undefined;
  if (isHere) lines[head.length + at] = withPointer(lines[head.length + at] ?? [], theme);
  const hidden = count - end;
  if (hidden > 0 && left > 1 && !(isHere && at === end - top - 1))
    lines[lines.length - 1] = [span(`   ${theme.glyphs.down} ${hidden + 1} more lines`, "muted")];
  return { lines, top, share, room: left, count, find: current, matches };
}

function rowsOfMatches(rows: readonly OutputRow[]): readonly number[] {
  return rows.flatMap(({ isMatch }, index) => (isMatch ? [index] : []));
}

/** The search, which if it is new goes to the first match from the visible rows on. */
function goToFirst(find: Find, matches: readonly number[], top: number): Find {
  if (!find.isNew) return find;
  const row = matches.find((match) => match >= top) ?? matches[0];
  return row === undefined ? { text: find.text } : { text: find.text, row };
}

/** The first row of a window that shows this row; `top` if the row is visible already. */
export function topToShow(row: number, top: number, room: number): number {
  return row >= top && row < top + room - 1 ? top : Math.max(0, row - Math.floor(room / 3));
}

/** The line of the present match with a pointer, since colour alone must not mark it. */
function withPointer(line: Line, { glyphs }: Theme): Line {
  const [first, ...rest] = line;
  return [span(` ${glyphs.pointer} `, "accent"), span(first?.text.slice(3) ?? "", first?.role), ...rest];
}
