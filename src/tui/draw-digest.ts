import { padColumns, widthOf, wrapLine } from "#base/text.ts";
import { formatDuration } from "#base/units.ts";
import { cleanLine, cleanText } from "#engine/events/clean.ts";
import { drawProblem, type DrawOptions } from "#errors/draw.ts";
import type { Problem } from "#errors/problem.ts";
import type { ChangeDigest, FailureDigest, NodeDigest, RunDigest } from "./digest.ts";
import { formatTotal, formatNodes, type DryRunStep, type DryRunPlan } from "./dry-run-plan.ts";
import { fit } from "./ink/text.ts";
import { endOfDetail } from "./cause-line.ts";
import { describeLeftOut } from "./left-out.ts";
import { itemTitle } from "./work-item.ts";
import { stripVTControlCharacters } from "node:util";

export interface DigestOptions extends DrawOptions {
  /** Columns of the screen, by default 80; names beyond them are counted. */
  readonly columns?: number;
  /** Whether lines fit the screen: titles and output are cut at its edge, other lines wrapped. */
  readonly fitsScreen?: boolean;
  /** Whether the digest ends a run that was watched: it leaves out operator, time, command and the diffs of a dry run. */
  readonly isEnd?: boolean;
}

// Beyond these numbers, changed steps, failures and warnings are counted.
const mostChanges = 10;
const mostFailures = 3;
const mostWarnings = 3;
/** Most lines of output for each failure. */
const mostLines = 6;
const ellipsis = { ellipsis: "…" };

/** A run on one screen. Ends without a line break. */
export function drawDigest(digest: RunDigest, options: DigestOptions = {}): string {
  const { columns = 80, color = false, fitsScreen = false, isEnd = false } = options;
  const room = fitsScreen ? columns : Infinity;
  const strong = (text: string) => (color ? `\u001b[1m${text}\u001b[0m` : text);
  const { changes, failures, warnings, next } = digest;
  const lines = [
    ...(isEnd
      ? [strong(endLine(digest))]
      : headLines(digest).map((line, index) => (index === 0 ? strong(line) : line))),
    ...(isEnd || digest.nodes.length === 0 ? [] : [""]),
    ...countLines(digest, columns),
    ...block(
      strong("Waiting for you:"),
      digest.questions.map(({ node, text }) => cleanText(`  ${node === undefined ? "" : `${node}  `}${text}`)),
    ),
    ...(digest.foresight && !isEnd
      ? foresightLines(digest.foresight, strong)
      : block(strong(digest.dryRun ? "Would change:" : "Changed:"), changeLines(changes, columns, room))),
    ...block(strong("The first cause of each failure:"), failureLines(failures, options, columns, room)),
    ...block(strong("Warnings:"), warningLines(warnings)),
    ...block(strong("Next:"), nextLines(next)),
  ];
  return lines.flatMap((line) => wrapPainted(line, room)).join("\n");
}

function block(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ["", title, ...lines];
}

/** The run's title, end and time. */
export function headLine({ title, state, milliseconds, dryRun, resumed, nodes }: RunDigest): string {
  const took = `${state === "running" || state === "waiting" ? "for" : "after"} ${formatDuration(milliseconds)}`;
  const kind = `${dryRun ? " (dry run: nothing was changed)" : ""}${resumed ? " (resumed)" : ""}`;
  const gone = nodes.filter(({ outcome }) => outcome === "unreachable").length;
  if (state === "unreachable" && gone > 0)
    return cleanLine(
      `${title}  ended ${took}: ${gone} of ${nodes.length === 1 ? "1 node" : `${nodes.length} nodes`} unreachable${kind}`,
    );
  return cleanLine(`${title}  ${state === "waiting" ? "waiting for you" : state} ${took}${kind}`);
}

function endLine(digest: RunDigest): string {
  return `${headLine(digest)}  (run ${digest.id})`;
}

function headLines(digest: RunDigest): readonly string[] {
  const { title, id, who, started, revision, dirty, command } = digest;
  const when = started.replace("T", " ").replace(/\..*/, " UTC");
  const unknown = dirty ? "nothing is committed yet" : "no git revision";
  const at =
    revision === undefined ? unknown : `at ${revision.slice(0, 12)}${dirty ? " with uncommitted changes" : ""}`;
  return [
    headLine(digest),
    `  run ${id}`,
    cleanText(`  by ${who}, ${when}, ${at}`),
    ...(command === title ? [] : [cleanText(`  $ ${command}`)]),
  ];
}

/** “4 nodes: 1 failed (n1), 3 done”, and the number of steps by outcome. Up to three nodes, the done ones are named, too. */
export function countLines({ nodes, tally, dryRun, leftOut }: RunDigest, columns = 80): readonly string[] {
  if (nodes.length === 0) return [];
  const { done = [], ...others } = Object.groupBy(nodes, ({ outcome }) => outcome);
  const who = (some: readonly NodeDigest[]) =>
    ` (${nodeNames(
      some.map(({ name }) => name),
      columns / 2,
    )})`;
  const parts = Object.entries(others).map(
    ([outcome, some = []]) => `${some.length} ${outcome.replace("-", " ")}${who(some)}`,
  );
  const changedOnes = done.filter(({ changed, wouldChange }) => changed + wouldChange > 0);
  const areAll = changedOnes.length === done.length;
  const areAlike = dryRun && changedOnes.length === nodes.length;
  const would = areAlike ? "would change" : `${changedOnes.length} would change`;
  if (dryRun && changedOnes.length > 0) parts.push(`${would}${who(changedOnes)}`);
  const rest = dryRun ? done.length - changedOnes.length : done.length;
  const how = areAll && !dryRun ? " and changed" : "";
  if (rest > 0) parts.push(`${rest} ${dryRun ? "would not change" : `done${how}${nodes.length > 3 ? "" : who(done)}`}`);
  if (!areAll && !dryRun && changedOnes.length > 0)
    parts.push(`${changedOnes.length} of them changed${who(changedOnes)}`);
  const { succeeded, changed, wouldChange, failed, unreachable, unknown, skipped, interrupted, unfinished } = tally;
  const differing = nodes.filter((node) => node.wouldChange > 0).length;
  const counts = [
    ...(dryRun
      ? [formatTotal(tally, differing), `${succeeded - wouldChange} in order`]
      : [`${succeeded} succeeded (changed=${changed})`]),
    `${failed} failed`,
    ...(unreachable > 0 ? [`${unreachable} unreachable`] : []),
    ...(unknown > 0 && !dryRun ? [`${unknown} unknown`] : []),
    ...(interrupted > 0 ? [`${interrupted} interrupted`] : []),
    ...(unfinished > 0 ? [`${unfinished} not finished`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(tally.notStarted > 0 ? [`${tally.notStarted} not started`] : []),
  ];
  return [
    cleanText(`${nodes.length === 1 ? "1 node" : `${nodes.length} nodes`}${areAlike ? "" : ":"} ${parts.join(", ")}`),
    `Steps: ${counts.join(", ")}`,
    ...(leftOut ? [cleanText(describeLeftOut(leftOut))] : []),
  ];
}

/** The plan of a dry run, with diffs, equal changes once; then unknown steps with their reasons. */
function foresightLines({ changes, unknown }: DryRunPlan, strong: (text: string) => string): readonly string[] {
  const head = (one: DryRunStep) => cleanText(`  ${itemTitle(one)}  ${formatNodes(one.nodes)}`);
  const why = ({ reason }: DryRunStep) => (reason === undefined ? "" : cleanText(`  ${reason}`));
  const body = ({ diff = "", changes: all }: DryRunStep) => [
    ...(diff === "" ? [] : indent(cleanText(diff.replace(/\n$/, "")))),
    ...all.map(({ name, have, want }) => cleanLine(`    ${name}: ${have ?? "(absent)"} → ${want}`)),
  ];
  return [
    ...block(
      strong("Would change:"),
      changes.flatMap((one) => [`${head(one)}${why(one)}`, ...body(one)]),
    ),
    ...block(
      strong("Unknown until earlier steps are applied:"),
      unknown.map((one) => `${head(one)}${why(one)}`),
    ),
  ];
}

function changeLines(changes: readonly ChangeDigest[], columns: number, room: number): readonly string[] {
  // Many changes have a line for each stage.
  const rows = changes.length > mostChanges ? byStage(changes, columns) : changes;
  const shown = rows.slice(0, mostChanges).map((row) => {
    const { nodes } = row;
    const what = `  ${itemTitle(row)}`;
    // The nodes must not be cut off.
    const where = `  ${nodeNames(nodes, columns - what.length - 2)}`;
    return fit(what, room - where.length, ellipsis) + cleanText(where);
  });
  const rest = rows.length - shown.length;
  return rest > 0 ? [...shown, `  and ${rest} more: runs show --events, or -o json`] : shown;
}

/** A row for each stage, with the titles of its steps. */
function byStage(changes: readonly ChangeDigest[], columns: number) {
  return [...Map.groupBy(changes, ({ stage }) => stage)].map(([stage, all]) => {
    const titles = all.map(({ title }) => ({ text: title, count: 1 }));
    const nodes = [...new Set(all.flatMap((change) => change.nodes))];
    const [only] = all.length === 1 ? all : [];
    return only ?? { stage, title: fitRanges(titles, columns / 2), nodes };
  });
}

function failureLines(
  failures: readonly FailureDigest[],
  options: DrawOptions,
  columns: number,
  room: number,
): readonly string[] {
  const shown = failures.slice(0, mostFailures).flatMap((failure) => {
    const { nodes, problem, cause, output, log, repeat } = failure;
    const who = nodes.length === 0 ? "" : `${nodeNames(nodes, columns / 2)}  `;
    return [
      fit(`  ${who}${itemTitle(failure)}`, room, ellipsis),
      ...indent(drawProblem(narrow({ ...endOfDetail(problem, mostLines), message: cause }, room - 8), options)),
      // A problem's detail holds the output already.
      ...(problem.detail ? [] : output.slice(-mostLines).map((line) => fit(`    | ${line}`, room, ellipsis))),
      ...(log === undefined ? [] : [`    log: ${log}`]),
      ...(repeat === undefined ? [] : [cleanText(`    again: ${repeat}`)]),
    ];
  });
  const rest = failures.length - mostFailures;
  return rest > 0 ? [...shown, `  and ${rest} more: -o json`] : shown;
}

/** The problem, with each line of its detail cut to `room` columns. */
function narrow(problem: Problem, room: number): Problem {
  if (!problem.detail || room === Infinity) return problem;
  const lines = problem.detail.split("\n").map((line) => fit(line, room, ellipsis));
  return { ...problem, detail: lines.join("\n") };
}

function indent(text: string): readonly string[] {
  return text.split("\n").map((line) => `    ${line}`);
}

function warningLines(warnings: RunDigest["warnings"]): readonly string[] {
  const shown = warnings
    .slice(0, mostWarnings)
    .map(({ node, text }) => cleanText(`  ${node === undefined ? "" : `${node}  `}${text.replaceAll("\n", " ")}`));
  const rest = warnings.length - mostWarnings;
  return rest > 0 ? [...shown, `  and ${rest} more: -o json`] : shown;
}

function nextLines(next: RunDigest["next"]): readonly string[] {
  const width = Math.max(...next.map(({ command }) => widthOf(command)));
  return next.map(({ command, why }) => cleanText(`  ${padColumns(command, width)}   ${why}`));
}

/** As many names of nodes as fit into so many columns, and the number of the others. */
function nodeNames(all: readonly string[], columns: number): string {
  return fitRanges(foldNames(all), columns);
}

function fitRanges(folds: readonly NameRange[], columns: number): string {
  const all = folds.reduce((sum, { count }) => sum + count, 0);
  let [text, shown] = ["", 0];
  for (const fold of folds) {
    const next = shown === 0 ? fold.text : `${text}, ${fold.text}`;
    if (shown > 0 && next.length > Math.max(24, columns) - 12) return `${text} and ${all - shown} more`;
    [text, shown] = [next, shown + fold.count];
  }
  return text;
}

/** One name; or a range of names that are numbered in order (`n1…n40`), and their count. */
interface NameRange {
  readonly text: string;
  readonly count: number;
}

/** The fewest names of a range; fewer are listed one by one. */
const fewestInRange = 4;

/** Replaces four or more neighbours that differ in one rising number by a range; other names stay as they are. */
export function foldNames(names: readonly string[]): readonly NameRange[] {
  const rows: { readonly names: string[]; at: number | undefined }[] = [];
  for (const name of names) {
    const row = rows.at(-1);
    const at = row && countedAt(row.names.at(-1) ?? "", name);
    if (row && at !== undefined && (row.at ?? at) === at) {
      row.names.push(name);
      row.at = at;
    } else rows.push({ names: [name], at: undefined });
  }
  return rows.flatMap(({ names: row }) =>
    row.length < fewestInRange
      ? row.map((text) => ({ text, count: 1 }))
      : [{ text: `${row[0]}…${row.at(-1)}`, count: row.length }],
  );
}

/** The index of the part that is one more than in the name before, if nothing else differs. */
function countedAt(before: string, name: string): number | undefined {
  const [one, other] = [before.split(/(\d+)/), name.split(/(\d+)/)];
  if (one.length !== other.length) return undefined;
  const differing = one.flatMap((part, index) => (part === other[index] ? [] : [index]));
  const [at] = differing;
  return differing.length === 1 && at !== undefined && isNext(one[at] ?? "", other[at] ?? "") ? at : undefined;
}

/** True for `009` and `010`, `9` and `10`; false for `9` and `010`. */
function isNext(one: string, other: string): boolean {
  const isAlike = one.length === other.length || (!one.startsWith("0") && !other.startsWith("0"));
  return /^\d{1,15}$/.test(one) && isAlike && Number(other) === Number(one) + 1;
}

/** Matches a line of a source excerpt or the mark below it, which must stay in its columns. */
const excerpt = /^\s*\d* \| /;

/**
 * A coloured line as lines of at most so many columns, broken between words; further lines have two more columns of indent. A
 * longer word stays whole, for it is a path or a command that an operator copies.
 */
export function wrapPainted(line: string, columns: number): readonly string[] {
  if (excerpt.test(stripVTControlCharacters(line))) return [line];
  return wrapLine(line, columns, `${/^ */.exec(line)?.[0] ?? ""}  `);
}
