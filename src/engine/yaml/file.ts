import type { SourcePosition } from "#errors/problem.ts";

/** A text that an operator wrote; turns offsets into lines and columns as an editor shows them. */
export class SourceFile {
  /** As problems name it: relative to the project, or `--params`. */
  readonly name: string;
  readonly text: string;
  #lineStarts: readonly number[] | undefined;

  constructor(name: string, text: string) {
    this.name = name;
    this.text = text;
  }

  /** The place of `offset`; `length` is cut at the end of the line, so that an underline stays on the line. */
  position(offset: number, length = 1): SourcePosition {
    const starts = (this.#lineStarts ??= lineStartsOf(this.text));
    const line = lastAtOrBefore(starts, offset);
    const start = starts[line] ?? 0;
    const lineEnd = (starts[line + 1] ?? this.text.length + 1) - 1;
    const shown = Math.max(1, Math.min(length, lineEnd - offset));
    const place = { file: this.name, line: line + 1, column: offset - start + 1 };
    return shown === 1 ? place : { ...place, length: shown };
  }

  /** The offset of a place given by line and column, both from 1. */
  offset(line: number, column: number): number {
    const starts = (this.#lineStarts ??= lineStartsOf(this.text));
    return (starts[Math.min(line, starts.length) - 1] ?? 0) + column - 1;
  }

  /** The start of the line that holds `offset`, and its text without the line break. */
  lineAt(offset: number): { readonly start: number; readonly text: string } {
    const starts = (this.#lineStarts ??= lineStartsOf(this.text));
    const line = lastAtOrBefore(starts, offset);
    const start = starts[line] ?? 0;
    return { start, text: this.text.slice(start, starts[line + 1] ?? this.text.length).replace(/\r?\n$/, "") };
  }
}

function lineStartsOf(text: string): number[] {
  const starts = [0];
  for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", at + 1)) starts.push(at + 1);
  return starts;
}

function lastAtOrBefore(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle - 1;
  }
  return low;
}
