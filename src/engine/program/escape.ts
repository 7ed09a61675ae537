/** One line for any text: back slash and line break escaped, the form in which values travel in frames. */
export function escapeLine(text: string): string {
  return text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
}

/** The inverse of {@link escapeLine}; an escape we never write stays as it is. */
export function unescapeLine(line: string): string {
  return line.replace(/\\(\\|n)/g, (_, what: string) => (what === "n" ? "\n" : "\\"));
}
