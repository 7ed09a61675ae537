/** Lines of a diff that are shown at most; the rest is counted. */
const longest = 400;

/**
 * A unified diff (POSIX diff -u) of a file's text, without a header; undefined when the texts are equal or too different
 * to compare within a second.
 */
export async function unifiedDiff(before: string, after: string): Promise<string | undefined> {
  const { structuredPatch } = await import("diff");
  const patch = structuredPatch("have", "want", before, after, "", "", { context: 3, timeout: 1000 });
  if (!patch || patch.hunks.length === 0) return undefined;
  const lines = patch.hunks.flatMap(({ oldStart, oldLines, newStart, newLines, lines: text }) => [
    `@@ -${oldStart},${oldLines} +${newStart},${newLines} @@`,
    ...text,
  ]);
  const more = lines.length - longest;
  return [...lines.slice(0, longest), ...(more > 0 ? [`… ${more} more lines`] : [])].join("\n");
}
