import stringWidth, { type Options } from "string-width";

/** A cache of string-width's results; emptied when full. */
const widths = new Map<string, number>();
const mostWidths = 5000;

/**
 * The columns that a text takes on a terminal. Simple characters (`isSimple`: one column, never joined with a neighbour) and colours
 * are counted here; string-width counts all other texts.
 */
export function widthOf(text: string): number {
  return simpleWidth(text) ?? cachedWidth(text);
}

/** Has string-width's signature. The bundle replaces string-width by it for Ink, which calls it for each character of a frame (scripts/build.ts). */
export default function stringWidthOf(text: string, options?: Options): number {
  return options ? stringWidth(text, options) : widthOf(text);
}

let graphemes: Intl.Segmenter | undefined;

/** The characters of a text as readers see them. Node takes 20 ms for its first segmenter, which few texts need. */
export function graphemesOf(text: string): Intl.Segments {
  graphemes ??= new Intl.Segmenter(undefined, { granularity: "grapheme" });
  return graphemes.segment(text);
}

/** The start of a text without colours that takes at most `width` columns; never half a character. */
export function takeColumns(text: string, width: number): string {
  if (width <= 0) return "";
  if (simpleWidth(text) === text.length) return text.slice(0, width);
  let used = 0;
  let end = 0;
  for (const { segment, index } of graphemesOf(text)) {
    used += widthOf(segment);
    if (used > width) return text.slice(0, end);
    end = index + segment.length;
  }
  return text;
}

/** Breaks a line between words into lines of at most `columns`; a longer word stays whole. Further lines begin with `indent`. */
export function wrapLine(line: string, columns: number, indent: string): readonly string[] {
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(/(?<=\S)(?= )/)) {
    if (current !== "" && widthOf(current + word) > columns) {
      lines.push(current);
      current = indent + word.trimStart();
    } else current += word;
  }
  return [...lines, current];
}

export function padColumns(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

/** The lines of a text that are not empty or blank. */
export function nonBlankLines(text: string): readonly string[] {
  return text.split("\n").filter((line) => line.trim() !== "");
}

/** Whether a text holds only simple characters and colours, so that it is safe to print on a terminal. */
export function isPlain(text: string): boolean {
  return simpleWidth(text) !== undefined;
}

function simpleWidth(text: string): number | undefined {
  let width = 0;
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code >= 0x20 && code < 0x7f) width += 1;
    else if (code === 0x1b) {
      const end = endOfColour(text, index);
      if (end === 0) return undefined;
      index = end;
    } else if (isSimple(code)) width += 1;
    else return undefined;
  }
  return width;
}

/** Latin-1 without the soft hyphen, Latin Extended-A, dashes and quotes, arrows and operators, ⏎, boxes and shapes, check marks. */
function isSimple(code: number): boolean {
  if (code < 0x2010) return code >= 0xa0 && code <= 0x17f && code !== 0xad;
  if (code <= 0x2027 || (code >= 0x2190 && code <= 0x22ff) || code === 0x23ce) return true;
  return (code >= 0x2500 && code <= 0x25fc) || (code >= 0x270c && code <= 0x2727);
}

/** The index of the `m` that ends the colour (SGR, ECMA-48 8.3.117) at `start`; 0 if another sequence begins there. */
function endOfColour(text: string, start: number): number {
  if (text.charCodeAt(start + 1) !== 0x5b) return 0;
  for (let index = start + 2; index < text.length; index++) {
    const code = text.charCodeAt(index);
    if (code === 0x6d) return index;
    // Only digits and semicolons: Ink rewrites colours with colons.
    if ((code < 0x30 || code > 0x39) && code !== 0x3b) return 0;
  }
  return 0;
}

function cachedWidth(text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    width = stringWidth(text);
    if (widths.size >= mostWidths) widths.clear();
    widths.set(text, width);
  }
  return width;
}
