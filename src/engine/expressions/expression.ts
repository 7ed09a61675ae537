import type { SourcePosition } from "#errors/problem.ts";
import { KcoreError } from "#errors/problem.ts";
import type { Loc, MustacheStatement, Program } from "./ast.ts";
import { parseTemplate } from "./parser.ts";
import { SourceFile } from "#engine/yaml/file.ts";
import type { SourceScalar } from "#engine/yaml/node.ts";

/** A parsed text with expressions, and the places of its parts in the operator's file. */
export interface Template {
  readonly text: string;
  readonly program: Program;
  /** The place of a part of the text. */
  readonly place: (loc: Loc) => SourcePosition;
}

const CACHE_SIZE = 10_000;
const MAX_NESTING = 64;
const programs = new Map<string, Program>();

/** Whether a text contains braces of an expression, escaped or not: a cheap test before parsing. */
export function mayHoldExpression(text: string): boolean {
  return text.includes("{{");
}

const scalarTemplates = new WeakMap<SourceScalar, Template>();

/** A scalar's text as a template, made once. @throws KcoreError EXPRESSION_SYNTAX at its place in the file. */
export function templateOfScalar(scalar: SourceScalar): Template {
  const known = scalarTemplates.get(scalar) ?? makeTemplate(scalar);
  scalarTemplates.set(scalar, known);
  return known;
}

function makeTemplate(scalar: SourceScalar): Template {
  const text = String(scalar.value);
  return templateIn(new SourceFile("", text), (offset, length) => placeInside(scalar, offset, length));
}

/** A whole file as a template. @throws KcoreError EXPRESSION_SYNTAX at its place in the file. */
export function templateOfFile(file: SourceFile): Template {
  return templateIn(file, (offset, length) => file.position(offset, length));
}

function templateIn(lines: SourceFile, placeOf: (offset: number, length: number) => SourcePosition): Template {
  const { text } = lines;
  const offset = ({ line, column }: Loc["start"]): number => lines.offset(line, column + 1);
  const place = ({ start, end }: Loc): SourcePosition =>
    placeOf(offset(start), Math.max(1, offset(end) - offset(start)));
  return { text, program: parse(text, place), place };
}

/** The source text at a place of the template; "{{…}}" if the place spans several lines. */
export function sourceAt({ text }: Template, { start, end }: Loc): string {
  return start.line === end.line ? (text.split("\n")[start.line - 1] ?? "").slice(start.column, end.column) : "{{…}}";
}

/** The expression of a text that is nothing but one expression, so that the value can keep its type; undefined for any other text. */
export function wholeExpression({ program }: Template): MustacheStatement | undefined {
  const [first, second] = program.body;
  return second === undefined && first?.type === "MustacheStatement" ? first : undefined;
}

/** Parses once per text: thousands of nodes share the same few hundred texts. */
function parse(text: string, place: (loc: Loc) => SourcePosition): Program {
  // Handlebars accepts a syntax tree in place of a text; a tree made from data would be code (S-19).
  if (typeof text !== "string") throw new TypeError("a template is a text");
  const known = programs.get(text);
  if (known !== undefined) return known;
  refuseDepth(text, place);
  const program = parseAnew(text, place);
  if (programs.size >= CACHE_SIZE) programs.clear();
  programs.set(text, program);
  return program;
}

/** The hint for a text in which an operator forgot to escape the Go templates (`{{if .Names}}`) of docker, kubectl and the like. */
export function foreignHint(text: string): string | undefined {
  if (!/\{\{-?(?:\s*[.$]|[^{}]*\s[.$][A-Za-z])/.test(text)) return undefined;
  return 'for another program\'s braces write \\{{… (within "…": \\\\{{…)';
}

function parseAnew(text: string, place: (loc: Loc) => SourcePosition): Program {
  try {
    return parseTemplate(text) as Program;
  } catch (cause) {
    const { message, loc } = describeParseError(cause as ParseFailure, text);
    const hint = foreignHint(text) ?? "see docs/templates.md";
    throw new KcoreError({ code: "EXPRESSION_SYNTAX", message, at: place(loc), hint }, { cause });
  }
}

/** Bounds the depth before parsing: the parser's time grows with the square of the depth, the stack of a walk with the depth. */
function refuseDepth(text: string, place: (loc: Loc) => SourcePosition): void {
  let [blocks, parentheses] = [0, 0];
  for (const { 0: found, index } of text.matchAll(/\{\{\{?~?\s*(?:#|\^(?!\s*~?\}\}))|\{\{~?\s*\/|\}\}|[()]/g)) {
    if (found === "(") parentheses++;
    else if (found === ")") parentheses--;
    else if (found === "}}") parentheses = 0;
    else blocks = Math.max(0, blocks + (found.endsWith("/") ? -1 : 1));
    if (blocks <= MAX_NESTING && parentheses <= MAX_NESTING) continue;
    const before = text.slice(0, index);
    const start = { line: before.split("\n").length, column: before.length - before.lastIndexOf("\n") - 1 };
    const message = `blocks or parentheses are nested more than ${MAX_NESTING} deep`;
    throw new KcoreError({ code: "EXPRESSION_SYNTAX", message, at: place({ start, end: start }) });
  }
}

type ParseFailure = Error & { readonly lineNumber?: number; readonly column?: number };

const TOKENS: Readonly<Record<string, string>> = {
  CLOSE: "}}",
  CLOSE_RAW_BLOCK: "}}}}",
  CLOSE_UNESCAPED: "}}}",
  CLOSE_SEXPR: ")",
  OPEN_ENDBLOCK: "{{/",
  INVERSE: "{{else}}",
  EQUALS: "=",
  EOF: "end of the text",
};

function describeParseError(
  { message, lineNumber, column }: ParseFailure,
  text: string,
): { message: string; loc: Loc } {
  if (lineNumber !== undefined && column !== undefined) {
    const start = { line: lineNumber, column };
    return {
      message: message.replace(/ - \d+:\d+$/, ""),
      loc: { start, end: { line: lineNumber, column: column + 1 } },
    };
  }
  const [, line = "1"] = /on line (\d+)/.exec(message) ?? [];
  const token = /got '(\w+)'/.exec(message)?.[1];
  const [, excerpt = "", pointer = ""] = message.split("\n");
  const start = arrowPlace(text, Number(line), excerpt, pointer.indexOf("^"));
  const what = token === undefined || token === "INVALID" ? "" : `: unexpected ${TOKENS[token] ?? "word"}`;
  return {
    message: `the expression cannot be read${what}`,
    loc: { start, end: { ...start, column: start.column + 1 } },
  };
}

/** The place in the text to which the arrow below a parse error's excerpt points. */
function arrowPlace(text: string, line: number, excerpt: string, arrow: number): Loc["start"] {
  const lineText = text.split("\n")[line - 1] ?? "";
  const before = excerpt.slice(0, Math.max(0, arrow)).replace(/^\.\.\./, "");
  const at = before === "" ? -1 : lineText.indexOf(before);
  return { line, column: at === -1 ? Math.max(0, lineText.lastIndexOf("{{")) : at + before.length };
}

/**
 * The place in the file of a character inside a scalar's value. It is exact for single-line scalars and literal blocks; in folded text,
 * within the expression's first line. The search begins at the expression's `{{`, which no YAML style changes, so escapes and folding
 * before it do not matter.
 */
function placeInside(scalar: SourceScalar, inner: number, length: number): SourcePosition {
  const value = String(scalar.value);
  const anchor = value.lastIndexOf("{{", inner);
  if (anchor === -1) return scalar.at;
  const source = scalar.source;
  let at = -2;
  for (let seen = 0, from = 0; from !== -1 && from <= anchor; seen++) {
    const next = value.indexOf("{{", from);
    if (next === -1 || next > anchor) break;
    at = source.indexOf("{{", at + 2);
    if (at === -1) return scalar.at;
    from = next + 2;
  }
  if (at < 0) return scalar.at;
  return scalar.file.position(scalar.start + offsetAfter(scalar, at, value.slice(anchor, inner)), length);
}

/** The offset in the YAML source after `text`, which begins at `at` and may be escaped or folded there. */
function offsetAfter(scalar: SourceScalar, at: number, text: string): number {
  const { source, style } = scalar;
  for (const character of text) {
    if (style === "double" && source[at] === "\\") at += escapeLength(source, at);
    else if (style === "single" && character === "'") at += 2;
    else if (/\s/.test(character) && /[\r\n]/.test(source[at] ?? ""))
      at += /^\s+/.exec(source.slice(at))?.[0].length ?? 1;
    else at += character.length;
  }
  return at;
}

/** The number of characters of an escape (YAML 1.2.2, 5.7). */
function escapeLength(source: string, at: number): number {
  return { x: 4, u: 6, U: 10 }[source[at + 1] ?? ""] ?? 2;
}
