import type { Problem } from "#errors/problem.ts";
import type { SourceFile } from "./file.ts";

/** `key: {{x}}/y` and the like: the real reason is the missing quotes. */
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
