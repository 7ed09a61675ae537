/** Characters of a server's text that are shown and recorded. */
const LENGTH = 1000;
/** Lines of a list of pods or fields. */
const LINES = 50;

/** The beginning of a server's text: a compromised server must not fill the record. */
export function clip(text: string, length = LENGTH): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** The first lines, and how many more there are. */
export function clipLines(lines: readonly string[]): string {
  const more = lines.length - LINES;
  return [...lines.slice(0, LINES), ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}
