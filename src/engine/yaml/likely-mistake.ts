import type { Problem } from "#errors/problem.ts";
import type { SourceFile } from "./file.ts";

/** An error of the YAML library. */
interface LibraryError {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly [number, number];
}

const keyHere = /^(?:[^\s,:{}[\]"'#-][^\s,:{}[\]"'#]*|"[^"\n]*"|'[^'\n]*')(?=\s*:(?:\s|$))/;

/**
 * The most likely mistake, where the library only names the unexpected character: a missing comma, an indentation that fits
 * no line above, an open bracket. It is reported at the place to change, with the right form. Undefined: none is likely.
 */
export function likelyMistake(source: SourceFile, found: LibraryError): Problem | undefined {
  const [start] = found.pos;
  const blank = oddBlank(source, start);
  if (blank) return blank;
  if (found.code === "TAB_AS_INDENT") return tab(source, start);
  const open = openBracket(source.text, start);
  if (open !== undefined && /^[|>]/.test(source.text.slice(start, start + 1))) return blockInFlow(source, start);
  if (found.code === "BAD_INDENT" && found.message.startsWith("Flow")) return notClosed(source, open);
  if (open !== undefined) return missingComma(source, start);
  if (found.code === "BAD_INDENT") return indentation(source, start);
  return found.code === "BLOCK_AS_IMPLICIT_KEY" ? afterValue(source, start) : undefined;
}

function syntax(
  source: SourceFile,
  [start, length]: readonly [number, number],
  message: string,
  hint: string,
): Problem {
  return { code: "YAML_SYNTAX", message, at: source.position(start, length), hint };
}

/** The comma missing in `{ a: 1 b: 2 }`: before the key at `start`, or after the value at `start`. */
function missingComma(source: SourceFile, start: number): Problem | undefined {
  const rest = source.text.slice(start);
  const [value = ""] = keyHere.test(rest) ? [] : (/^(?:"[^"\n]*"|'[^'\n]*'|[^\s,{}[\]"']+)\s+/.exec(rest) ?? []);
  const at = start + value.length;
  const [item] = keyHere.exec(source.text.slice(at)) ?? /^(?:"[^"\n]*"|'[^'\n]*')/.exec(source.text.slice(at)) ?? [];
  const [before] =
    /(?:\[[^[\]\n]*\]|\{[^{}\n]*\}|"[^"\n]*"|'[^'\n]*'|[^\s,{}[\]]+)(?=\s*$)/.exec(
      source.text.slice(Math.max(0, at - 1000), at).replaceAll(/\s#.*/g, ""),
    ) ?? [];
  // A bracket or a comma right before it: something else is wrong.
  if (item === undefined || before === undefined || before.endsWith(":")) return undefined;
  const [more = ""] = /^[^,\n{}[\]]*/.exec(source.text.slice(at)) ?? [];
  const [begun = ""] = /[^,:{}[\]]*$/.exec(source.text.slice(0, at)) ?? [];
  const text = `${begun.trim()} ${more.trim()}`;
  const isText = !/["'#\n]/.test(text) && begun.trim() !== "";
  return syntax(
    source,
    [at, item.length],
    `a comma is missing before ${quotedName(item)}`,
    `write: ${before}, ${more.trim()}${isText ? `; or, if it is one text, quote it: "${text}"` : ""}`,
  );
}

function notClosed(source: SourceFile, open: number | undefined): Problem | undefined {
  if (open === undefined) return undefined;
  const bracket = source.text[open] ?? "";
  const end = bracket === "{" ? "}" : "]";
  const { text, start } = source.lineAt(open);
  const block = text.search(/[|>][-+0-9]*\s*$/);
  if (block >= 0) return blockInFlow(source, start + block);
  return syntax(source, [open, 1], `the “${bracket}” is not closed`, `end it with “${end}”: ${text.trim()} ${end}`);
}

/** `{ content: | }`: a text in lines of its own needs a map in lines of its own. */
function blockInFlow(source: SourceFile, at: number): Problem {
  const sign = source.text[at] ?? "";
  const message = `a text behind “${sign}” cannot stand within { … } or [ … ]`;
  return syntax(source, [at, 1], message, "write the map without braces, a key a line, or the text in quotes");
}

function tab(source: SourceFile, offset: number): Problem {
  const { text, start } = source.lineAt(offset);
  const length = (/^\s*/.exec(text)?.[0] ?? "").length;
  const right = text.replace(/^\s*/, (blanks) => blanks.replaceAll("\t", "  "));
  return syntax(
    source,
    [start, length],
    "a tab indents the line; YAML knows blanks only",
    `write two blanks: “${right}”`,
  );
}

/** The problem of a character that only looks like a blank, as indentation or after a colon or dash, on this line or a neighbour. */
function oddBlank(source: SourceFile, offset: number): Problem | undefined {
  const { start } = source.lineAt(offset);
  const next = source.text.indexOf("\n", offset) + 1;
  for (const from of [start, ...(next > 0 ? [next] : []), ...(start > 0 ? [source.lineAt(start - 1).start] : [])]) {
    const found = /(?:^|[:-])[ \t]*(?=[^\S \t\r\n])/.exec(source.lineAt(from).text);
    if (found) return oddBlankProblem(source, from + found.index + found[0].length);
  }
  return undefined;
}

/** The problem with the character at `offset`, which is no blank for YAML. */
export function oddBlankProblem(source: SourceFile, offset: number): Problem {
  const code = source.text.charCodeAt(offset).toString(16).toUpperCase().padStart(4, "0");
  const message = `U+${code} stands here, which only looks like a blank`;
  return syntax(source, [offset, 1], message, "write a blank in its place; copied text often brings such signs along");
}

interface Lead {
  readonly offset: number;
  /** Blanks before it. */
  readonly indent: number;
  /** The line's key, or the dash of an item. */
  readonly token: string;
  readonly text: string;
}

/** The key or dash at the beginning of a line, with its indentation. */
function leadOf(source: SourceFile, offset: number): Lead | undefined {
  const { text, start } = source.lineAt(offset);
  const indent = (/^ */.exec(text)?.[0] ?? "").length;
  const rest = text.slice(indent);
  const token = keyHere.exec(rest)?.[0] ?? /^-(?= |$)/.exec(rest)?.[0];
  return token === undefined ? undefined : { offset: start + indent, indent, token, text: rest };
}

/** The problem of a line at whose column no line above begins. */
function indentation(source: SourceFile, offset: number): Problem | undefined {
  const line = leadOf(source, offset);
  if (!line) return undefined;
  const above: Lead[] = [];
  for (let at = source.lineAt(offset).start - 1; at >= 0; at = source.lineAt(at).start - 1) {
    const lead = leadOf(source, at);
    if (lead && lead.indent < (above.at(-1)?.indent ?? Infinity)) above.push(lead);
  }
  const deeper = above.findLast(({ indent }) => indent > line.indent);
  const shallower = above.find(({ indent }) => indent < line.indent);
  const beside = [deeper, shallower]
    .filter((lead) => lead !== undefined)
    .map(({ indent, token }) => `at column ${indent + 1}, as ${quotedName(token)} does`);
  if (beside.length === 0) return undefined;
  return syntax(
    source,
    [line.offset, line.token.length],
    `${quotedName(line.token)} begins at column ${line.indent + 1}, where nothing above it begins`,
    `begin “${line.text.trimEnd()}” ${beside.join(", or ")}`,
  );
}

/** The problem of a key after a value: on the same line, or on the next one, indented too far. */
function afterValue(source: SourceFile, offset: number): Problem | undefined {
  const { text, start } = source.lineAt(offset);
  const rest = text.slice(offset - start);
  if (rest.trim() === "" || /^\s*-(?: |$)/.test(text)) {
    const own = leadOf(source, offset);
    if (own?.offset !== undefined && text.slice(0, offset - start).trim() === "") return indentation(source, offset);
  }
  if (/:(?:\s|$)/.test(rest))
    return syntax(
      source,
      [offset, rest.trimEnd().length],
      "a second “: ” stands in the line",
      `quote the text: "${rest.trimEnd()}"`,
    );
  const next = /\n(?:[ \t]*(?:#.*)?\n)*/.exec(source.text.slice(offset));
  const line = next && leadOf(source, offset + next.index + next[0].length);
  const lead = leadOf(source, offset);
  if (!line || !lead || line.indent <= lead.indent) return undefined;
  return syntax(
    source,
    [line.offset, line.token.length],
    `${quotedName(line.token)} stands deeper than ${quotedName(lead.token)} above it, which has its value already`,
    `begin “${line.text.trimEnd()}” at column ${lead.indent + 1}, as ${quotedName(lead.token)} does`,
  );
}

function quotedName(token: string): string {
  return `“${token.replaceAll(/^["']|["']$/g, "")}”`;
}

/** The offset of the innermost bracket that is still open at `end`. */
function openBracket(text: string, end: number): number | undefined {
  const open: number[] = [];
  for (let at = 0; at < end; at++) {
    const character = text[at] ?? "";
    const isFirst = at === 0 || /[\s,[{:]/.test(text[at - 1] ?? "");
    if (character === "#" && isFirst) at = endOf(text, "\n", at);
    else if ((character === '"' || character === "'") && isFirst) at = endOf(text, character, at);
    // Inside a plain text a bracket is an ordinary character, unless the text itself is within brackets.
    else if ((character === "{" || character === "[") && (isFirst || open.length > 0)) open.push(at);
    else if (character === "}" || character === "]") open.pop();
  }
  return open.at(-1);
}

function endOf(text: string, mark: string, at: number): number {
  const end = text.indexOf(mark, at + 1);
  return end < 0 ? text.length : end;
}

/** The problem of an expression without quotes, as in `key: {{x}}/y`, in the line of `offset`; undefined: the line has none. */
export function unquotedExpression(source: SourceFile, offset: number): Problem | undefined {
  const { start, text } = source.lineAt(offset);
  // A text in a map or list on one line, too: { cmd: echo {{x}} }.
  const found = /(?:(?:^|[:,-])\s+|[[{]\s*)((?:[^\s"'{}[\],:#](?:[^"'{}[\],:#]|:\S)*)?\{\{.*)$/.exec(text);
  return found?.[1] === undefined ? undefined : unquotedProblem(source, start + text.length - found[1].length);
}

/** “quote your {{…}}”, at the expression that starts at `offset`. */
export function unquotedProblem(source: SourceFile, offset: number): Problem {
  const { start, text } = source.lineAt(offset);
  const rest = text.slice(offset - start);
  const expression = /^[^{]*(?:\{\{.*?\}\}+[^,\]{}#]*)+/.exec(rest)?.[0].trimEnd() ?? rest;
  const quotes = expression.includes('"') ? "'" : '"';
  return {
    code: "YAML_UNQUOTED",
    message: `${expression} is not in quotes, so YAML reads it as a map`,
    at: source.position(offset, expression.length),
    hint: `write ${quotes}${expression}${quotes}`,
  };
}
