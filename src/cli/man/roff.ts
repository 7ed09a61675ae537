/**
 * Text for man(7) pages, as groff and mandoc read it. Everything that comes from outside goes through {@link escapeRoff}.
 */

/** A text that stands for itself: no request at a line's beginning, no escape, and dashes that can be copied. */
export function escapeRoff(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replaceAll("…", "...")
    .replaceAll("“", "\\(lq")
    .replaceAll("”", "\\(rq")
    .replaceAll(/^([.'])/gm, "\\&$1");
}

export function section(title: string, body: string): string {
  return body === "" ? "" : `.SH ${title}\n${body.trimEnd()}\n`;
}

/** A term in bold and what it means, indented below it. */
export function tagged(term: string, meaning: string): string {
  return `.TP\n\\fB${escapeRoff(term)}\\fR\n${escapeRoff(meaning)}\n`;
}

/** Lines as they are, without filling. */
export function verbatim(text: string): string {
  return `.nf\n${escapeRoff(text)}\n.fi\n`;
}
