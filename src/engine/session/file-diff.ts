import { setImmediate } from "node:timers/promises";

/** Lines of a diff that are shown; further lines are counted. */
const maxLines = 400;
/** Removed and added lines that are compared at most: more would block the event loop (measured on a busy machine: 47 ms; 72 ms with 500). */
const maxEdits = 300;

/** For an empty range, POSIX diff names the line before it: a new file begins with `-0,0`. */
function startOf(start: number, lines: number): number {
  return lines === 0 ? start - 1 : start;
}

/**
 * A unified diff (POSIX diff -u) of a file's text, without a header; undefined when the texts are equal or more than 300 lines differ.
 * Yields to the event loop before the comparison.
 */
export async function unifiedDiff(before: string, after: string): Promise<string | undefined> {
  const { structuredPatch } = await import("diff");
  await setImmediate();
  const patch = structuredPatch("have", "want", before, after, "", "", { context: 3, maxEditLength: maxEdits });
  if (!patch || patch.hunks.length === 0) return undefined;
  const lines = patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: text }) => [
    `@@ -${startOf(oldStart, oldLines)},${oldLines} +${startOf(newStart, newLines)},${newLines} @@`,
    ...text,
  ]);
  const more = lines.length - maxLines;
  return [...lines.slice(0, maxLines), ...(more > 0 ? [`… ${more} more lines`] : [])].join("\n");
}
