import ts from "typescript";

/** A comment, a paragraph or a string: its text as one line, and the offset in the file of each character of that line. */
export interface Prose {
  readonly text: string;
  readonly offsets: readonly number[];
  readonly isComment: boolean;
}

/** The comments of a TypeScript file, for src also its strings; the paragraphs of a Markdown file; the `#` comments of any other file. */
export function proseOf(file: string, text: string): readonly Prose[] {
  if (file.endsWith(".md")) return paragraphsOf(text);
  if (/\.tsx?$/.test(file)) {
    const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
    return [...commentsOf(source), ...(file.startsWith("src/") ? textsOf(source) : [])];
  }
  return hashCommentsOf(text);
}

/** The comments of a source file. Consecutive lines of `//` count as one comment. */
function commentsOf(source: ts.SourceFile): readonly Prose[] {
  const { text } = source;
  const found = new Map<number, ts.CommentRange>();
  const visit = (node: ts.Node): void => {
    const { pos, end } = node;
    for (const range of [
      ...(ts.getLeadingCommentRanges(text, pos) ?? []),
      ...(ts.getTrailingCommentRanges(text, end) ?? []),
    ])
      found.set(range.pos, range);
    ts.forEachChild(node, visit);
  };
  visit(source);
  const ranges = [...found.values()].filter(({ pos }) => !isInText(source, pos)).toSorted((a, b) => a.pos - b.pos);
  const blocks: ts.CommentRange[][] = [];
  for (const range of ranges) {
    const last = blocks.at(-1)?.at(-1);
    const isNext =
      last?.kind === ts.SyntaxKind.SingleLineCommentTrivia &&
      range.kind === last.kind &&
      /^\n[ \t]*$/.test(text.slice(last.end, range.pos));
    if (isNext) blocks.at(-1)?.push(range);
    else blocks.push([range]);
  }
  return blocks.map((block) => {
    const offsets: number[] = [];
    for (const { pos, end } of block) for (let at = pos; at < end; at++) offsets.push(at);
    return lined(text, offsets, true);
  });
}

/** Strings of at least three words, except those of `sh` and `rawSh`. A string inside an expression of a template is a string of its own. */
function textsOf(source: ts.SourceFile): readonly Prose[] {
  const found: Prose[] = [];
  const visit = (node: ts.Node): void => {
    const maker = ts.isTaggedTemplateExpression(node) ? node.tag : ts.isCallExpression(node) && node.expression;
    if (maker && ["sh", "rawSh"].includes(maker.getText(source))) return;
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node)) {
      const start = node.getStart(source) + 1;
      const holes = ts.isTemplateExpression(node) ? node.templateSpans.map(({ expression }) => expression) : [];
      const offsets = Array.from({ length: node.end - 1 - start }, (_, at) => start + at).filter((at) =>
        holes.every(({ pos, end }) => at < pos || at >= end),
      );
      const prose = lined(source.text, offsets, false, edges);
      if (prose.text.trim().split(/\s+/).length >= 3) found.push(prose);
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function isInText(source: ts.SourceFile, pos: number): boolean {
  let isText = false;
  const visit = (node: ts.Node): void => {
    if (pos < node.getStart(source) || pos >= node.end) return;
    if (ts.isStringLiteralLike(node) || ts.isTemplateExpression(node) || ts.isRegularExpressionLiteral(node))
      isText = true;
    ts.forEachChild(node, visit);
  };
  visit(source);
  return isText;
}

/** Parts of a string at which a sentence ends: the command of an example in a help text, a cell of a table, a tag of HTML. */
const edges = /^ {2,}kcore(?: \S+)*$|^ *(?:\S+ )+ +(?=\S)|<[/!a-z][^>]*>/gm;

/** The paragraphs, list items and table rows of a Markdown file, without fenced code and headings. */
function paragraphsOf(text: string): readonly Prose[] {
  const blank = text.replaceAll(/^```[^]*?^```|^#+ .*/gm, (code) => code.replaceAll(/[^\n]/g, " "));
  const paragraphs: Prose[] = [];
  for (const { 0: block, index } of blank.matchAll(/(?:^(?![ \t]*$).+\n?)+/gm))
    for (const part of block.matchAll(
      /(?:^[ \t]*(?:[-*#>] |\||\d+\. )[^]*?|[^]+?)(?=\n[ \t]*(?:[-*#>] |\||\d+\. )|$(?![^]))/gm,
    )) {
      const start = index + part.index;
      paragraphs.push(
        lined(
          text,
          Array.from({ length: part[0].length }, (_, at) => start + at),
          false,
        ),
      );
    }
  return paragraphs;
}

function hashCommentsOf(text: string): readonly Prose[] {
  const lines = [...text.matchAll(/^[ \t]*#(?!!)[ \t]?(.*)$/gm)].map((match) => ({
    start: match.index,
    end: match.index + match[0].length,
  }));
  const blocks: { start: number; end: number }[] = [];
  for (const line of lines) {
    const last = blocks.at(-1);
    if (last && last.end + 1 === line.start) last.end = line.end;
    else blocks.push({ ...line });
  }
  return blocks.map(({ start, end }) =>
    lined(
      text,
      Array.from({ length: end - start }, (_, at) => start + at),
      true,
    ),
  );
}

/**
 * The characters at these offsets as one line of the same length: comment and list marks become blanks, a match of `edges` becomes ` | `,
 * and code and quotations become `x`.
 */
function lined(text: string, offsets: readonly number[], isComment: boolean, edges = /(?!)/g): Prose {
  const raw = offsets.map((at) => text[at] ?? "").join("");
  const clear = raw
    .replaceAll(/^[ \t]*(?:\/\*\*?|\*\/|\*|\/\/+|#+|[-|>]|\d+\.)/gm, (mark) => " ".repeat(mark.length))
    .replaceAll(edges, (edge) => " | ".padEnd(edge.length))
    .replaceAll(/\*\/$/g, "  ")
    .replaceAll(/\\n|\$\{[^}]*\}/g, (code) => (code === "\\n" ? "  " : "x".repeat(code.length)))
    .replaceAll(/`[^`]*`|“[^”]*”|"[^"\n]*"|<kbd>[^<]*<\/kbd>/g, (code) => "x".repeat(code.length))
    .replaceAll("\n", " ");
  return { text: clear, offsets, isComment };
}
