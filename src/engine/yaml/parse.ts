import { Composer, isScalar, type Document } from "yaml";
import { KcoreError, type Problem } from "#errors/problem.ts";
import { buildTree } from "./build-tree.ts";
import { SourceFile } from "./file.ts";
import { type SourceNode, SourceScalar } from "./node.ts";
import { likelyMistake, unquotedExpression } from "./likely-mistake.ts";
import { Problems } from "./problems.ts";
import { decodeSource, tokenize } from "./scan.ts";

/**
 * Parses strict YAML 1.2 into a tree whose nodes know their places. `file` is the name that problems show. An empty text
 * is a null scalar. Refused, each with its own message: more than 1 MiB (`maxBytes`), other encodings than UTF-8, NUL,
 * `%YAML 1.1`, unknown tags, several documents, more than 50 aliases, 64 levels, duplicate or prototype keys;
 * numbers with a leading zero, unquoted `{{…}}`, and all that YAML itself only warns about.
 * @throws KcoreError with every problem found.
 */
export function parseSource(
  file: string,
  text: string | Uint8Array,
  { maxBytes }: { readonly maxBytes?: number } = {},
): SourceNode {
  const source = new SourceFile(file, decodeSource(file, text, maxBytes));
  const [document, second] = composeAll(source);
  if (second !== undefined)
    throw new KcoreError({
      code: "YAML_UNSUPPORTED",
      message: "a file holds one document; a second one begins here",
      at: source.position(source.text.lastIndexOf("---", second.contents?.range[0] ?? source.text.length), 3),
      hint: "remove the line “---”, or move what follows into a file of its own",
    });
  const problems = new Problems();
  problems.add(...syntaxProblems(source, document ? [document] : []));
  problems.throwIfAny();
  const tree = treeOf(source, document, problems);
  problems.throwIfAny();
  return tree;
}

/**
 * Parses all documents of a text, each as {@link parseSource} does; empty documents are left out.
 * @throws KcoreError with every problem found.
 */
export function parseDocuments(file: string, text: string | Uint8Array): readonly SourceNode[] {
  const source = new SourceFile(file, decodeSource(file, text));
  const documents = composeAll(source);
  const problems = new Problems();
  problems.add(...syntaxProblems(source, documents));
  problems.throwIfAny();
  const trees = documents
    .filter(({ contents }) => contents !== null && !(isScalar(contents) && contents.value === null))
    .map((document) => treeOf(source, document, problems));
  problems.throwIfAny();
  return trees;
}

function treeOf(source: SourceFile, document: Document.Parsed | undefined, problems: Problems): SourceNode {
  return document?.contents ? buildTree(source, document.contents, problems) : nothing(source);
}

function nothing(source: SourceFile): SourceNode {
  return new SourceScalar(source, 0, 0, null);
}

function composeAll(source: SourceFile): readonly Document.Parsed[] {
  const tokens = tokenize(source);
  const problems = new Problems();
  for (const token of tokens)
    if (token.type === "directive" && /^%YAML\s+(?!1\.2\s*$)/.test(token.source))
      problems.add({
        code: "YAML_UNSUPPORTED",
        message: "only YAML 1.2 is read here, where yes, no, on and off are plain words",
        at: source.position(token.offset, token.source.length),
        hint: "remove the %YAML line",
      });
  problems.throwIfAny();
  // The tree builder finds duplicate keys: the library's own check is quadratic.
  const composer = new Composer({ version: "1.2", schema: "core", uniqueKeys: false, prettyErrors: false });
  return [...composer.compose(tokens, true, source.text.length)] as Document.Parsed[];
}

/** The most lines of a file for which the likely mistake is searched. */
const maxGuesses = 20;

function syntaxProblems(source: SourceFile, documents: readonly Document.Parsed[]): Problem[] {
  const [lines, reported] = [new Set<number>(), new Set<string>()];
  const found = documents.flatMap(({ errors, warnings }) => [...errors, ...warnings]);
  return found.flatMap((error) => {
    const [start, end] = error.pos;
    const offset = Math.min(start, Math.max(0, source.text.length - 1));
    const at = source.position(offset, Math.max(1, end - start));
    // One mistake often causes several errors in its line; the first error says most.
    if (lines.has(at.line)) return [];
    lines.add(at.line);
    const unquoted = unquotedExpression(source, offset);
    if (unquoted !== undefined) return unquoted;
    if (error.code === "TAG_RESOLVE_FAILED")
      return {
        code: "YAML_UNSUPPORTED",
        message: `tags such as ${source.text.slice(start, end)} are not read here`,
        at,
        hint: "remove the tag; quote the value if it is a text",
      };
    // Each search reads the whole text, so only the first mistakes get one.
    const likely = lines.size <= maxGuesses ? likelyMistake(source, error) : undefined;
    const problem = likely ?? { code: "YAML_SYNTAX" as const, message: syntaxMessage(error.message), at };
    const key = JSON.stringify(problem);
    if (reported.has(key)) return [];
    reported.add(key);
    return problem;
  });
}

/** The library's message in the form of kcore's messages: no final stop, a small first letter. */
function syntaxMessage(message: string): string {
  const plain = message.replace(/\.$/, "");
  return `not valid YAML: ${plain.charAt(0).toLowerCase()}${plain.slice(1)}`;
}
