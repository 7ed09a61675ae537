import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The folder of the repository. */
export const root = join(import.meta.dirname, "../..");

/** All error codes. */
export function errorCodes(): readonly string[] {
  const text = readFileSync(join(root, "src/errors/codes.ts"), "utf8");
  return Array.from(text.matchAll(/\| "([A-Z0-9_]+)"/g), ([, code = ""]) => code);
}

/** A fenced block of a page, or a span of code in its text. */
export interface Piece {
  /** Relative to the repository. */
  readonly page: string;
  /** The place for readers: `docs/states.md:11`. */
  readonly at: string;
  readonly text: string;
}

/** A fenced block; `info` is the text behind its opening fence. */
export interface Block extends Piece {
  readonly info: string;
}

/** A page of the documentation. */
export interface Page {
  readonly name: string;
  readonly text: string;
  readonly blocks: readonly Block[];
  /** The page's lines outside of blocks, with their numbers from 1. */
  readonly prose: readonly { readonly text: string; readonly line: number }[];
  /** Text between backticks outside of blocks. */
  readonly spans: readonly Piece[];
}

/** README.md, CONTRIBUTING.md and all of docs/; `adr: false` leaves out the decisions, which may be outdated. */
export function readPages({ adr = true }: { readonly adr?: boolean } = {}): readonly Page[] {
  const names = ["README.md", "CONTRIBUTING.md", ...globSync("docs/**/*.md", { cwd: root }).toSorted()];
  return names.filter((name) => adr || !name.startsWith("docs/adr/")).map((name) => readPage(name));
}

function readPage(name: string): Page {
  const text = readFileSync(join(root, name), "utf8");
  const blocks: Block[] = [];
  const prose: { text: string; line: number }[] = [];
  let open: { info: string; line: number; lines: string[] } | undefined;
  for (const [index, line] of text.split("\n").entries()) {
    if (open && line === "```") {
      blocks.push({ page: name, at: `${name}:${open.line}`, info: open.info, text: `${open.lines.join("\n")}\n` });
      open = undefined;
    } else if (open) open.lines.push(line);
    else if (line.startsWith("```")) open = { info: line.slice(3), line: index + 1, lines: [] };
    else prose.push({ text: line, line: index + 1 });
  }
  return { name, text, blocks, prose, spans: [...spansOf(name, prose)] };
}

/** A span may continue in the next line; a paragraph ends it. */
function* spansOf(page: string, prose: Page["prose"]): Generator<Piece> {
  const text = prose.map((line) => line.text).join("\n");
  for (const { 0: span, 1: inner = "", index } of text.matchAll(/(?<!`)`([^`]+)`(?!`)/g)) {
    if (span.includes("\n\n")) throw new Error(`${page}: a backtick without its other one: ${span.slice(0, 60)}`);
    const line = prose[text.slice(0, index).split("\n").length - 1]?.line ?? 0;
    yield { page, at: `${page}:${line}`, text: inner.replaceAll(/\s*\n\s*/g, " ").replaceAll("\\|", "|") };
  }
}
