import { cleanText } from "#engine/events/clean.ts";
import type { Change } from "#engine/events/event.ts";
import type { ChangeDigest, FailureDigest, RunDigest } from "./digest.ts";
import { countLines, headLine, foldNames } from "./draw-digest.ts";
import type { DryRunStep } from "./dry-run-plan.ts";
import { itemTitle } from "./work-item.ts";

/** Characters of the text: a comment of GitHub takes 65,536, a summary and GitLab's notes more. The blocks beyond are counted. */
const mostCharacters = 60_000;
const mostDiffLines = 120;
const mostOutputLines = 20;

/**
 * A run in short as Markdown, for a comment or a job's summary. Texts of nodes and files stand in code alone, without links, mentions
 * and HTML (S-4). Pure; ends with a line break.
 */
export function drawMarkdown(digest: RunDigest): string {
  const { changes, failures, foresight, warnings, nodes } = digest;
  const counts = countLines(digest);
  const blocks = [
    `### ${markOf(digest)} ${code(headLine(digest))}`,
    aboutRun(digest),
    ...(nodes.length === 0 ? [] : [counts.map(code).join("  \n")]),
    ...section("First cause of each failure", failures.map(failureBlock)),
    ...(foresight
      ? [
          ...section("Would change", foresight.changes.map(foreseenBlock)),
          ...section("Unknown until earlier steps are applied", foresight.unknown.map(changeItem)),
        ]
      : section("Changed", changes.map(changeItem))),
    ...section(
      "Warnings",
      warnings.map(({ node, text }) => `- ${node === undefined ? "" : `${code(node)} `}${code(text)}`),
    ),
  ];
  return `${fittingBlocks(blocks).join("\n\n")}\n`;
}

function markOf({ state, foresight }: RunDigest): string {
  if (state !== "done") return "✗";
  return foresight && foresight.changes.length + foresight.unknown.length > 0 ? "◇" : "✓";
}

function aboutRun({ id, who, command, revision, dirty }: RunDigest): string {
  const at = revision === undefined ? "" : `, commit ${code(revision.slice(0, 12))}`;
  return `Run ${code(id)} by ${code(who)}${at}${dirty ? " **with uncommitted changes**" : ""}: ${code(command)}`;
}

function section(title: string, blocks: readonly string[]): readonly string[] {
  return blocks.length === 0 ? [] : [`#### ${title}`, ...blocks];
}

/** As many blocks as there is room for, then the number of the others without headings. */
function fittingBlocks(blocks: readonly string[]): readonly string[] {
  let length = 0;
  const count = blocks.findIndex((block) => (length += block.length + 2) > mostCharacters);
  if (count === -1) return blocks;
  const rest = blocks.slice(count).filter((block) => !block.startsWith("#"));
  return [...blocks.slice(0, count), `… and ${rest.length} more: the run's report or record tells them.`];
}

function rangesText(nodes: readonly string[]): string {
  return foldNames(nodes)
    .map(({ text }) => text)
    .join(", ");
}

function changeItem(change: Omit<ChangeDigest, "outcome"> & Pick<DryRunStep, "reason">): string {
  const { nodes, reason } = change;
  return `- ${code(itemTitle(change))} on ${code(rangesText(nodes))}${reason === undefined ? "" : `: ${code(reason)}`}`;
}

function foreseenBlock(one: DryRunStep): string {
  const { diff = "", changes } = one;
  return [
    changeItem(one),
    ...changes.map(factLine),
    ...(diff === "" ? [] : [indentBlock(fence("diff", diff, mostDiffLines))]),
  ].join("\n");
}

function factLine({ name, have, want }: Change): string {
  return `  - ${code(name)}: ${have === undefined ? "(absent)" : code(have)} → ${code(want)}`;
}

function failureBlock(failure: FailureDigest): string {
  const { nodes, problem, cause, at, output } = failure;
  const { code: kind, hint, detail } = problem;
  const place = at ? ` at ${code(`${at.file}:${at.line}:${at.column}`)}` : "";
  const printed = detail ?? output.join("\n");
  const causeText = `${cause}  [${kind}]${hint === undefined ? "" : `\nhint: ${hint}`}`;
  return [
    `- ${code(itemTitle(failure))}${nodes.length === 0 ? "" : ` on ${code(rangesText(nodes))}`}${place}`,
    indentBlock(fence("text", causeText, mostOutputLines)),
    ...(printed === "" ? [] : [indentBlock(fence("text", printed, mostOutputLines))]),
  ].join("\n");
}

/** A span of code on one line; its backticks outnumber every row of backticks in the text. */
function code(text: string): string {
  const plain = cleanText(text).replaceAll(/\s+/g, " ").trim();
  const mark = "`".repeat(longestRun(plain) + 1);
  return plain === "" ? "(empty)" : `${mark} ${plain} ${mark}`;
}

/** A block of code with at most so many lines: the first of a diff, the last of an output. */
function fence(language: "diff" | "text", text: string, most: number): string {
  const lines = cleanText(text).replace(/\n$/, "").split("\n");
  const left = lines.length - most;
  const shown = language === "diff" ? lines.slice(0, most) : lines.slice(-most);
  const rest = left > 0 ? [`… ${left} more lines`] : [];
  const body = (language === "diff" ? [...shown, ...rest] : [...rest, ...shown]).join("\n");
  const mark = "`".repeat(Math.max(3, longestRun(body) + 1));
  return `${mark}${language}\n${body}\n${mark}`;
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map(({ length }) => length));
}

/** Indents a block, so that it belongs to the list item above. */
function indentBlock(block: string): string {
  return `\n${block.replaceAll(/^(?=.)/gm, "  ")}`;
}
