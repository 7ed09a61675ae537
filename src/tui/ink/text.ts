import { graphemesOf, padColumns, takeColumns, widthOf } from "#base/text.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Glyphs, TextRole, Theme } from "./theme.ts";

/** A piece of a line. Painting makes a text from a node harmless for the terminal. */
export interface Span {
  readonly text: string;
  readonly role?: TextRole;
}

/** One row of the terminal, before it is cut to the terminal's width. */
export type Line = readonly Span[];

export function span(text: string, role?: TextRole): Span {
  return role === undefined ? { text } : { text, role };
}

const printable = /^[\u0020-\u007e]*$/;

/** The text as one harmless line, without sequences, line breaks and tabs (S-4). */
export function oneLine(text: string): string {
  return printable.test(text) ? text : cleanText(text).replaceAll("\t", "    ").replaceAll("\n", " ");
}

/** The text on one line in at most `width` columns; an ellipsis marks a cut. */
export function fit(text: string, width: number, { ellipsis }: Pick<Glyphs, "ellipsis">): string {
  const clean = oneLine(text);
  if (widthOf(clean) <= width) return clean;
  return width <= 0 ? "" : `${takeColumns(clean, width - 1)}${ellipsis}`;
}

/** The text in exactly `width` columns, filled with blanks or cut. */
export function fitExactly(text: string, width: number, glyphs: Pick<Glyphs, "ellipsis">, align?: "right"): string {
  const cut = fit(text, width, glyphs);
  return align === "right" ? " ".repeat(Math.max(0, width - widthOf(cut))) + cut : padColumns(cut, width);
}

export function lineWidth(line: Line): number {
  return line.reduce((sum, { text }) => sum + widthOf(oneLine(text)), 0);
}

/** The line in at most `width` columns. */
export function fitLine(line: Line, width: number, glyphs: Pick<Glyphs, "ellipsis">): Line {
  if (lineWidth(line) <= width) return line;
  const fitted: Span[] = [];
  // One column is for the mark of the cut.
  let left = width - 1;
  if (left < 0) return [];
  for (const { text, role } of line) {
    const clean = oneLine(text);
    const needs = widthOf(clean);
    if (needs > left) return [...fitted, span(takeColumns(clean, left) + glyphs.ellipsis, role)];
    fitted.push(span(clean, role));
    left -= needs;
  }
  return fitted;
}

/** The line filled with blanks up to `width`, or cut to it. */
export function padLine(line: Line, width: number, glyphs: Pick<Glyphs, "ellipsis">): Line {
  const fitted = fitLine(line, width, glyphs);
  const gap = width - lineWidth(fitted);
  return gap > 0 ? [...fitted, span(" ".repeat(gap))] : fitted;
}

/** Left and right in one line of `width` columns; the left one is cut first. */
export function justify(left: Line, right: Line, width: number, glyphs: Pick<Glyphs, "ellipsis">): Line {
  const end = fitLine(right, width, glyphs);
  const needs = lineWidth(end);
  if (needs === 0) return fitLine(left, width, glyphs);
  if (needs + 2 > width) return end;
  return [...padLine(left, width - needs - 1, glyphs), span(" "), ...end];
}

/** As many whole parts as fit into `width` columns, but at least the first. */
export function joinFitting(parts: readonly Line[], between: string, width: number): Line {
  let line: Line = [span(" ")];
  for (const [index, part] of parts.entries()) {
    const next = [...line, ...(index > 0 ? [span(between, "muted")] : []), ...part];
    if (index > 0 && lineWidth(next) > width) break;
    line = next;
  }
  return line;
}

/** Parts side by side, in as many lines of `width` columns as they need. */
export function wrapParts(
  parts: readonly Line[],
  { indent = 1, gap, width }: { readonly indent?: number; readonly gap: number; readonly width: number },
): readonly Line[] {
  const lines: Span[][] = [];
  for (const part of parts) {
    const last = lines.at(-1);
    if (last && lineWidth(last) + gap + lineWidth(part) <= width) last.push(span(" ".repeat(gap)), ...part);
    else lines.push([span(" ".repeat(indent)), ...part]);
  }
  return lines;
}

/** A text of several lines, each broken where it is longer than `width`. */
export function wrapText(text: string, width: number): readonly string[] {
  return wrapLines(text, width, () => 0);
}

/** As `wrapText`, but broken between words where a line has blanks. */
export function wrapWords(text: string, width: number): readonly string[] {
  return wrapLines(text, width, (rest, most) => (rest[most.length] === " " ? most.length : most.lastIndexOf(" ")));
}

/** `blankIn`: the index of the blank at which to break `rest`, whose start `most` has room; 0 or less: break after `most`. */
function wrapLines(text: string, width: number, blankIn: (rest: string, most: string) => number): readonly string[] {
  const lines: string[] = [];
  for (const line of cleanText(text).replaceAll("\t", "    ").split("\n")) {
    let rest = line;
    while (widthOf(rest) > width) {
      const most = takeColumns(rest, Math.max(1, width));
      // A character may be wider than the whole width.
      if (most === "") break;
      const blank = blankIn(rest, most);
      lines.push(blank > 0 ? rest.slice(0, blank) : most);
      rest = rest.slice(blank > 0 ? blank + 1 : most.length);
    }
    lines.push(rest);
  }
  return lines;
}

const lookalikes: Readonly<Record<string, string>> = {
  "“": '"',
  "”": '"',
  "„": '"',
  "‘": "'",
  "’": "'",
  "–": "-",
  "—": "-",
  "…": "~",
  "→": ">",
  "·": ".",
  "×": "x",
  "\u00a0": " ",
};

/** The text for a terminal without Unicode, as wide as it was. */
function asciiOnly(text: string): string {
  if (printable.test(text)) return text;
  return Array.from(graphemesOf(text), ({ segment }) =>
    printable.test(segment) ? segment : (lookalikes[segment] ?? "?".repeat(widthOf(segment))),
  ).join("");
}

/** The line with its colours, in at most `width` columns, without sequences of a node. */
export function paintLine(line: Line, width: number, theme: Theme): string {
  let painted = "";
  let text = "";
  let role: TextRole = "plain";
  // Neighbours of one role are painted together, because a sequence costs Ink more time than letters.
  for (const piece of fitLine(line, width, theme.glyphs)) {
    const next = piece.role ?? "plain";
    if (next !== role) {
      painted += theme.paint(role, text);
      [text, role] = ["", next];
    }
    const clean = oneLine(piece.text);
    text += theme.unicode ? clean : asciiOnly(clean);
  }
  return painted + theme.paint(role, text);
}
