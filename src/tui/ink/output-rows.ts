import { oneLine, span, wrapText, type Line, type Span } from "./text.ts";
import type { Glyphs } from "./theme.ts";

export type StreamName = "out" | "err";

/** A part of a text: the index of its first character, and the index after its last. */
export type TextRange = readonly [from: number, to: number];

/** A row of output as wide as the pane; longer where lines are not wrapped. */
export interface OutputRow {
  readonly text: string;
  readonly stream: StreamName;
  /** The matches of a search; a match that continues in the next row is marked in both. */
  readonly marks?: readonly TextRange[];
  /** A match begins in this row. */
  readonly isMatch?: true;
}

export interface RowOptions {
  /** Columns that a row has. */
  readonly width: number;
  /** Whether long lines continue in the next row; else each is one row. */
  readonly wrap: boolean;
  /** The searched expression. */
  readonly find?: RegExp | undefined;
}

/** An expression for this literal text; case counts if the text has capitals. Undefined for an empty text. */
export function finder(text: string): RegExp | undefined {
  if (text === "") return undefined;
  return new RegExp(RegExp.escape(text), text === text.toLowerCase() ? "giu" : "gu");
}

/** The rows of an output; `streamOf` gives the stream of a line. */
export function outputRows(
  text: string,
  streamOf: (line: number) => StreamName,
  { width, wrap, find }: RowOptions,
): readonly OutputRow[] {
  return text
    .replace(/\n$/, "")
    .split("\n")
    .flatMap((line, index): readonly OutputRow[] => {
      const parts = wrapText(line, wrap ? width : Infinity);
      const stream = streamOf(index);
      if (!find) return parts.map((part) => ({ text: part, stream }));
      const found = matchesIn(parts.join(""), find);
      let start = 0;
      return parts.map((part): OutputRow => {
        const end = start + part.length;
        const marks = found
          .filter(([from, to]) => from < end && to > start)
          .map(([from, to]): TextRange => [Math.max(0, from - start), Math.min(end, to) - start]);
        const isMatch = found.some(([from]) => from >= start && from < end);
        start = end;
        return { text: part, stream, ...(marks.length > 0 && { marks }), ...(isMatch && { isMatch }) };
      });
    });
}

function matchesIn(text: string, find: RegExp): readonly TextRange[] {
  return Array.from(text.matchAll(find), ({ 0: match, index }): TextRange => [index, index + match.length]);
}

/** A row of output with its gutter; stderr has a mark and a colour of its own. */
export function outputLine({ text, stream, marks }: OutputRow, { bar }: Pick<Glyphs, "bar">): Line {
  const isError = stream === "err";
  const gutter = isError ? span("   ! ", "warning") : span(`   ${bar} `, "muted");
  return [gutter, ...marked(isError ? span(text, "stderr") : span(text), marks)];
}

function marked(whole: Span, marks: readonly TextRange[] = []): readonly Span[] {
  const spans: Span[] = [];
  let at = 0;
  for (const [from, to] of marks) {
    spans.push({ ...whole, text: whole.text.slice(at, from) }, span(whole.text.slice(from, to), "selected"));
    at = to;
  }
  return [...spans, { ...whole, text: whole.text.slice(at) }].filter(({ text }) => text !== "");
}

/** Whether one of the line's spans has a match. */
export function hasMatch(line: Line, find: RegExp): boolean {
  return line.some(({ text }) => oneLine(text).search(find) >= 0);
}

/** The line with its matches marked. */
export function markLine(line: Line, find: RegExp | undefined): Line {
  if (!find) return line;
  return line.flatMap((whole) => {
    const clean = { ...whole, text: oneLine(whole.text) };
    return marked(clean, matchesIn(clean.text, find));
  });
}
