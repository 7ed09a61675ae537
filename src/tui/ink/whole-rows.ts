import { isPlain } from "#base/text.ts";

/** An operation of Ink's renderer (ink/build/output.js): a text at its place, or an area that clips texts. */
export interface Operation {
  readonly type: string;
  readonly x?: number;
  readonly y?: number;
  readonly text?: string;
  readonly transformers?: readonly ((line: string, index: number) => string)[];
}

/** By raw text, the cleaned rows of this frame and of the frame before; rows that are plain need no cleaning. */
let [cleanedNow, cleanedBefore] = [new Map<string, string>(), new Map<string, string>()];

/**
 * The rows of a frame in which each text has a row of its own (`Lines` of ./screen.ts), without Ink's grid of characters. Undefined for any other
 * frame, which Ink draws itself. `clean` is Ink's own writing of a line. The bundle calls this before Ink (scripts/build.ts).
 */
export function wholeRows(
  operations: readonly Operation[],
  height: number,
  clean: (line: string) => string,
): readonly string[] | undefined {
  const rows: (string | undefined)[] = Array.from({ length: height });
  for (const { type, x, y = -1, text = "", transformers = [] } of operations) {
    if (type !== "write" || x !== 0 || !(y in rows) || rows[y] !== undefined || text.includes("\n")) return undefined;
    // Ink cleans a text before its transformers, and their result once more.
    rows[y] = cleaned(
      transformers.reduce((line, transform) => transform(line, 0), cleaned(text, clean)),
      clean,
    ).trimEnd();
  }
  [cleanedNow, cleanedBefore] = [new Map<string, string>(), cleanedNow];
  return rows.map((row = "") => row);
}

function cleaned(line: string, clean: (line: string) => string): string {
  if (isPlain(line)) return line;
  let known = cleanedNow.get(line) ?? cleanedBefore.get(line);
  if (known === undefined) {
    known = clean(line);
    // A clean text stays clean.
    cleanedNow.set(known, known);
  }
  cleanedNow.set(line, known);
  return known;
}
