import { Lexer, Parser, type CST } from "yaml";
import { formatBinary } from "#base/units.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { SourceFile } from "./file.ts";
import { MAX_SOURCE_BYTES } from "./regular-file.ts";

/** Levels of lists and maps. */
const MAX_DEPTH = 64;

/**
 * Decodes a source's bytes, strictly.
 * @throws KcoreError FILE_TOO_LARGE, YAML_ENCODING
 */
export function decodeSource(name: string, bytes: string | Uint8Array, maxBytes = MAX_SOURCE_BYTES): string {
  const size = typeof bytes === "string" ? Buffer.byteLength(bytes) : bytes.length;
  if (size > maxBytes)
    throw new KcoreError({
      code: "FILE_TOO_LARGE",
      message: `${name} has ${formatBinary(size)}, more than the ${formatBinary(maxBytes)} allowed here`,
      hint: "split it into several files",
    });
  const text = typeof bytes === "string" ? bytes : decodeUtf8(name, bytes);
  const odd = text.search(/[\0\uFFFE\uFFFF]/);
  if (odd !== -1) {
    const what = text[odd] === "\0" ? "a NUL byte" : `U+${text.charCodeAt(odd).toString(16).toUpperCase()}`;
    throw new KcoreError({ ...encodingProblem(name, text, odd), message: `${name} holds ${what}` });
  }
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

function decodeUtf8(name: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (cause) {
    const replaced = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
    throw new KcoreError(
      { ...encodingProblem(name, replaced, replaced.indexOf("\uFFFD")), message: `${name} is not UTF-8 text` },
      { cause },
    );
  }
}

function encodingProblem(name: string, text: string, offset: number): Omit<Problem, "message"> {
  const before = text.slice(0, Math.max(0, offset));
  const line = before.split("\n").length;
  const column = before.length - before.lastIndexOf("\n");
  return {
    code: "YAML_ENCODING",
    at: { file: name, line, column },
    hint: "save it as UTF-8 text; keep binary content in a file of its own and name it with source:",
  };
}

/**
 * The concrete tokens of a text, found without recursion, so that depth is bounded before anything walks the tree.
 * @throws KcoreError YAML_TOO_DEEP
 */
export function tokenize(file: SourceFile): CST.Token[] {
  const parser = new Parser();
  const tokens: CST.Token[] = [];
  for (const lexeme of new Lexer().lex(file.text)) {
    for (const token of parser.next(lexeme)) tokens.push(token);
    // The stack holds the document and perhaps a scalar besides the lists and maps.
    if (parser.stack.length > MAX_DEPTH && parser.stack.filter(isCollection).length > MAX_DEPTH)
      throw new KcoreError({
        code: "YAML_TOO_DEEP",
        message: `lists and maps are nested more than ${MAX_DEPTH} levels deep`,
        at: file.position(Math.min(parser.offset, file.text.length) - 1),
      });
  }
  for (const token of parser.end()) tokens.push(token);
  return tokens;
}

function isCollection({ type }: { readonly type: string }): boolean {
  return type === "block-map" || type === "block-seq" || type === "flow-collection";
}
