/** The maximum number of characters of a server's text that are shown and recorded. */
const MOST_CHARACTERS = 1000;
/** The maximum number of lines of a list of pods or fields. */
const MOST_LINES = 50;

/** The beginning of a server's text: a compromised server must not fill the record. */
export function clipText(text: string, length = MOST_CHARACTERS): string {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

/** The first lines, and how many more there are. */
export function clipLines(lines: readonly string[]): string {
  const more = lines.length - MOST_LINES;
  return [...lines.slice(0, MOST_LINES), ...(more > 0 ? [`and ${more} more`] : [])].join("\n");
}
