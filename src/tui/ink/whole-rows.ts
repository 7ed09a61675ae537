import { isPlain } from "#base/text.ts";

/** What Ink's renderer noted for a frame (ink/build/output.js): texts and where they stand, and areas that clip them. */
export interface Operation {
  readonly type: string;
  readonly x?: number;
  readonly y?: number;
  readonly text?: string;
  readonly transformers?: readonly ((line: string, index: number) => string)[];
}

/** Rows of this frame and of the last one that are not plain, by the text they were made of. */
let [kept, earlier] = [new Map<string, string>(), new Map<string, string>()];

/**
 * The rows of a frame in which each text has a row of its own, as those of our views have (./lines.ts), without a grid of characters:
 * most of them are those of the frame before. Undefined for any other frame: Ink draws it. `clean`: how Ink itself
 * writes a line. The bundle asks this first (scripts/build.ts).
 */
export function wholeRows(
  operations: readonly Operation[],
  height: number,
  clean: (line: string) => string,
): readonly string[] | undefined {
  const rows: (string | undefined)[] = Array.from({ length: height });
  for (const { type, x, y = -1, text = "", transformers = [] } of operations) {
    if (type !== "write" || x !== 0 || !(y in rows) || rows[y] !== undefined || text.includes("\n")) return undefined;
    // Ink cleans a text before its transformers and what they made of it once more.
    rows[y] = cleaned(
      transformers.reduce((line, transform) => transform(line, 0), cleaned(text, clean)),
      clean,
    ).trimEnd();
  }
  [kept, earlier] = [new Map<string, string>(), kept];
  return rows.map((row = "") => row);
}

function cleaned(line: string, clean: (line: string) => string): string {
  if (isPlain(line)) return line;
  let known = kept.get(line) ?? earlier.get(line);
  if (known === undefined) {
    known = clean(line);
    // What is clean stays so.
    kept.set(known, known);
  }
  kept.set(line, known);
  return known;
}
