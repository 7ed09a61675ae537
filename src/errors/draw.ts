import type { Problem, SourcePosition } from "./problem.ts";

export interface DrawOptions {
  /** Terminal colours; off by default. */
  readonly color?: boolean;
  /** Reads the text of the line at a problem's place; undefined if it cannot be read. */
  readonly sourceLine?: (at: SourcePosition) => string | undefined;
}

/**
 * Returns one problem as text for a screen: place and message, the source line with a caret below the fault, detail lines,
 * the hint. It ends without a line break. Control characters in any part are written out, so no terminal obeys them.
 */
export function drawProblem(problem: Problem, { color = false, sourceLine }: DrawOptions = {}): string {
  const paint = (code: string, text: string) => (color ? `\u001b[${code}m${text}\u001b[0m` : text);
  const { code, message, at, hint, detail } = problem;
  const place = at ? `${paint("1", visible(`${at.file}:${at.line}:${at.column}`))}  ` : "";
  const lines = [`${place}${paint("31", visible(message))}  ${paint("2", `[${code}]`)}`];
  // A line that may hold a secret is not shown.
  const source = at && problem.conceal !== true ? sourceLine?.(at) : undefined;
  if (at && source !== undefined) lines.push(...drawSource(at, source).map((line) => paint("2", line)));
  if (detail)
    lines.push(
      ...detail
        .replace(/\n+$/, "")
        .split("\n")
        .map((line) => `  | ${visible(line)}`),
    );
  if (hint)
    lines.push(
      ...hint
        .split("\n")
        .map((line, index) => `${index === 0 ? `  ${paint("36", "hint:")} ` : "        "}${visible(line)}`),
    );
  return lines.join("\n");
}

/** Returns problems as text, with blank lines between them; the count is last if there are several. */
export function drawProblems(problems: readonly Problem[], options: DrawOptions = {}): string {
  const drawn = problems.map((problem) => drawProblem(problem, options)).join("\n\n");
  return problems.length > 1 ? `${drawn}\n\n${problems.length} problems` : drawn;
}

const longestLine = 160;

function drawSource({ line, column, length = 1 }: SourcePosition, text: string): string[] {
  const gutter = String(line).padStart(5);
  const whole = visible(text.replaceAll("\t", " "));
  // A very long line is cut around the place, so that an error fits on one screen.
  const start = column > longestLine - 20 ? column - 20 : 0;
  const visiblePart = whole.slice(start, start + longestLine);
  const at = Math.max(0, column - 1 - start);
  const caret = "^".repeat(Math.max(1, Math.min(length, visiblePart.length - at)));
  const cut = [start > 0 ? "…" : "", start + longestLine < whole.length ? "…" : ""];
  return [`${gutter} | ${cut.join(visiblePart)}`, `${" ".repeat(5)} | ${" ".repeat(at + (start > 0 ? 1 : 0))}${caret}`];
}

/** The text with all control characters but tab and line feed written out, so no text of a node or file can control the terminal. */
export function visible(text: string): string {
  // eslint-disable-next-line no-control-regex -- finding control characters is the purpose
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, (character) => {
    const code = character.charCodeAt(0);
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** Characters that JSON writes as they are and a terminal may obey, or be confused by: C1 controls, separators and marks of direction. */
// oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
const unescaped = /[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g;

/**
 * Writes control characters in JSON or double-quoted YAML as `\u009b`: parsers read the same, terminals obey nothing (S-4).
 * `##[` is escaped too, because GitHub's runner obeys it anywhere in a line.
 */
export function escapeControls(text: string): string {
  return text.replace(unescaped, escaped).replaceAll("##[", `#${escaped("#")}[`);
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
