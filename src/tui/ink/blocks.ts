import type { TerminalSize } from "./screen.ts";
import { justify, lineWidth, padLine, span, type Line } from "./text.ts";
import type { Glyphs, TextRole, Theme } from "./theme.ts";

/** A line with texts at both ends and a rule between them. */
export function ruled(left: Line, right: Line, width: number, glyphs: Glyphs): Line {
  const gap = width - lineWidth(left) - lineWidth(right);
  return gap < 0 ? justify(left, right, width, glyphs) : [...left, span(glyphs.rule.repeat(gap), "muted"), ...right];
}

/** A rule that begins with a title. */
export function titled(title: Line, width: number, glyphs: Glyphs, role: TextRole = "muted"): Line {
  return ruled([span(`${glyphs.rule.repeat(2)} `, role), ...title, span(" ")], [], width, glyphs);
}

/** A title over the visible part of a text from `top` on. Also returns `top`, limited so that the last line ends the room. */
export function scrolledText(
  title: Line,
  text: readonly Line[],
  { top: wanted, room, width }: { readonly top: number; readonly room: number; readonly width: number },
  glyphs: Glyphs,
): { readonly lines: readonly Line[]; readonly top: number } {
  const { top, end } = windowAround(text.length, room - 1, wanted);
  const more = end < text.length ? [span(`, ${text.length - end} more below`, "muted")] : [];
  const [first, ...rest] = title;
  return {
    top,
    lines: [titled([...(first ? [first] : []), ...more, ...rest], width, glyphs), ...text.slice(top, end)],
  };
}

/** Two blocks beside each other with a bar between them; `hung`: both blocks begin with a rule, which the bar joins. */
export function besides(
  left: readonly Line[],
  leftWidth: number,
  right: readonly Line[],
  { glyphs }: Theme,
  height: number,
  hung: boolean,
): readonly Line[] {
  return Array.from({ length: Math.max(0, height) }, (_, index) => [
    ...padLine(left[index] ?? [], leftWidth - 1, glyphs),
    span(hung && index === 0 ? glyphs.hung : ` ${glyphs.bar} `, "muted"),
    ...(right[index] ?? []),
  ]);
}

/** Exactly `height` lines: cut, or filled with empty lines. */
export function filled(lines: readonly Line[], height: number): readonly Line[] {
  if (lines.length >= height) return lines.slice(0, Math.max(0, height));
  return [...lines, ...Array.from({ length: height - lines.length }, () => [])];
}

const smallest: TerminalSize = { columns: 40, rows: 8 };

/** The line for a terminal that is too small for a view; undefined for a larger one. */
export function tooSmall({ columns, rows }: TerminalSize, view: string): Line | undefined {
  if (columns >= smallest.columns && rows >= smallest.rows) return undefined;
  return [span(`${columns}x${rows} is too small; ${smallest.columns}x${smallest.rows} will do. ${view}`)];
}

/** The shown part of a long list: the first row, and the row after the last. */
export interface RowWindow {
  readonly top: number;
  readonly end: number;
}

/** The window nearest to the one from `top` that shows `selected` and stays within the list. */
export function windowAround(count: number, height: number, top: number, selected?: number): RowWindow {
  const room = Math.max(0, height);
  let first = top;
  if (selected !== undefined && selected >= 0) {
    if (selected < first) first = selected;
    if (selected >= first + room) first = selected - room + 1;
  }
  first = Math.max(0, Math.min(first, count - room));
  return { top: first, end: Math.min(count, first + room) };
}
