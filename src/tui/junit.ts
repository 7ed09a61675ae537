import { visible } from "#errors/draw.ts";
import { causeLine } from "./cause-line.ts";
import type { Problem, SourcePosition } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Change, Outcome, RunEvent } from "#engine/events/event.ts";
import { runTime, type NodeModel, type RunModel } from "#engine/events/run-model.ts";
import { reduceEvents } from "#engine/events/reduce.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { ownEnd, ownProblems, tallyOfBastion, tallyOfNode, type OwnEnd, type Tally } from "./tally.ts";
import { actionsByNode, bastionActions, itemOf, workOn, type Work } from "./work-item.ts";
import { lastLines } from "#engine/events/whole-lines.ts";

/** One test of a suite, before it is written. */
interface Case {
  readonly name: string;
  readonly group: string;
  readonly milliseconds: number;
  readonly outcome: Outcome | OwnEnd | undefined;
  readonly reason?: string;
  readonly problem?: Problem;
  readonly exitStatus?: number;
  readonly position?: SourcePosition;
  readonly output: string;
}

/**
 * A run as JUnit XML for Jenkins, GitLab and others: a suite for each node and one for the bastion, a case for each step. A failed step is
 * a failure; an unreachable node, and work that was interrupted or has no end, is an error. Pure; ends with a line break.
 */
export function drawJunit(events: readonly RunEvent[]): string {
  const model = reduceEvents(events);
  const outputOf = wholeOutputs(events);
  const nodes = [...model.nodes.values()].map((node) =>
    drawSuite(model, node.name, casesOf(model, node, outputOf), tallyOfNode(model, node)),
  );
  const actions = bastionActions(model).map((action) => caseOf(action, outputOf(action)));
  const own = [...actions, ...ownProblems(model).map(ownCase(model))];
  const suites = own.length > 0 ? [...nodes, drawSuite(model, "bastion", own, tallyOfBastion(model))] : nodes;
  const all = suites.flatMap(({ cases }) => cases);
  const open = tag("testsuites", {
    name: model.title === "" ? "kcore" : model.title,
    ...counts(all),
    time: seconds(runTime(model)),
  });
  const lines = [`<?xml version="1.0" encoding="UTF-8"?>`, open, ...suites.flatMap(({ lines: one }) => one)];
  return `${[...lines, "</testsuites>"].join("\n")}\n`;
}

/** The work for a node in the order in which it began; then the node's end, if no work reports that end. */
function casesOf(model: RunModel, node: NodeModel, outputOf: ReturnType<typeof wholeOutputs>): readonly Case[] {
  const work = workOn(node, actionsByNode(model).get(node.name) ?? []);
  const known = work.map((one) => caseOf(one, outputOf(one, node.name)));
  const outcome = ownEnd(node, work);
  if (outcome === undefined) return withNodeProblem(known, node.problem);
  const reason = node.outcome?.replace("-", " ") ?? "the run ended before the node did";
  const own = { name: "node", group: "run", milliseconds: 0, outcome, reason, output: "" };
  return [...known, { ...own, ...omitUndefined({ problem: node.problem }) }];
}

/** Gives the node's problem to its first failed or interrupted case, if that case has none. */
function withNodeProblem(cases: readonly Case[], problem: Problem | undefined): readonly Case[] {
  const at = cases.findIndex(({ outcome }) => outcome === "failed" || outcome === "interrupted");
  const found = cases[at];
  return problem && found && !found.problem ? cases.with(at, { ...found, problem }) : cases;
}

function caseOf(work: Work, printed: string): Case {
  const {
    title,
    stage,
    duration = 0,
    outcome,
    reason,
    problem,
    exitStatus,
    position,
    changes,
    diff,
    note,
    warning,
  } = itemOf(work);
  const warnings = warning ? [`warning: ${warning.message}`, ...(warning.hint ? [`hint: ${warning.hint}`] : [])] : [];
  const notes = [...(diff ? [diff.trimEnd()] : []), ...(note ? [note] : [])];
  const parts = [...warnings, ...changes.map(changeLine), ...notes, printed];
  return {
    name: "step" in work ? title : [work.action, ...(work.item === undefined ? [] : [work.item])].join(" "),
    group: stage,
    milliseconds: duration,
    outcome,
    output: parts.filter((text) => text !== "").join("\n"),
    ...omitUndefined({ reason, problem, exitStatus, position }),
  };
}

function ownCase(model: RunModel): (problem: Problem) => Case {
  const outcome = model.outcome === "interrupted" ? "interrupted" : "failed";
  return (problem) => ({ name: "run", group: "run", milliseconds: 0, outcome, problem, output: "" });
}

function changeLine({ name, have, want }: Change): string {
  return `${name}: ${have ?? "(absent)"} → ${want}`;
}

function drawSuite(model: RunModel, name: string, cases: readonly Case[], { time }: Tally) {
  const properties = {
    run: model.runId,
    command: model.command,
    who: model.who,
    ...(model.revision === undefined ? {} : { revision: `${model.revision}${model.dirty ? " (with changes)" : ""}` }),
    ...(model.dryRun ? { "dry-run": "true" } : {}),
  };
  const open = tag("testsuite", {
    name,
    ...counts(cases),
    time: seconds(time),
    timestamp: new Date(model.startedAt).toISOString().replace(/\..*/, ""),
  });
  const listed = Object.entries(properties).map(
    ([key, value]) => `      ${tag("property", { name: key, value }, "/")}`,
  );
  const lines = [
    `  ${open}`,
    "    <properties>",
    ...listed,
    "    </properties>",
    ...cases.map(caseLines),
    "  </testsuite>",
  ];
  return { cases, lines };
}

function caseLines(one: Case): string {
  const { name, group, milliseconds, position, output } = one;
  const open = {
    name,
    classname: group,
    time: seconds(milliseconds),
    ...(position && { file: position.file, line: String(position.line) }),
  };
  const inner = [...verdict(one), ...(output === "" ? [] : [`      <system-out>${xml(output)}</system-out>`])];
  return inner.length === 0
    ? `    ${tag("testcase", open, "/")}`
    : [`    ${tag("testcase", open)}`, ...inner, "    </testcase>"].join("\n");
}

function verdict(one: Case): readonly string[] {
  const { reason, problem, outcome } = one;
  const kind = caseResult(one);
  if (kind === "skipped") return [`      ${tag("skipped", { message: reason ?? outcome ?? "" }, "/")}`];
  if (kind === "passed") return [];
  const message = causeLine(one) ?? reason ?? (outcome === undefined ? "did not end" : outcome);
  return [`      ${tag(kind, { message, type: problem?.code ?? "INTERRUPTED" })}${xml(causeText(one))}</${kind}>`];
}

function causeText({ problem, position, reason }: Case): string {
  const at = problem?.at ?? position;
  const lines = [
    ...(at ? [`${at.file}:${at.line}:${at.column}`] : []),
    ...(problem ? [`${problem.message} [${problem.code}]`] : reason === undefined ? [] : [reason]),
    ...(problem?.detail ? [problem.detail.trimEnd()] : []),
    ...(problem?.hint ? [`hint: ${problem.hint}`] : []),
  ];
  return lines.join("\n");
}

type CaseResult = "passed" | "skipped" | "failure" | "error";

const resultsByOutcome: Readonly<Record<Outcome | OwnEnd, CaseResult>> = {
  ok: "passed",
  changed: "passed",
  "would-change": "passed",
  skipped: "skipped",
  unknown: "skipped",
  notStarted: "skipped",
  failed: "failure",
  unreachable: "error",
  interrupted: "error",
  unfinished: "error",
};

function caseResult({ outcome }: Case): CaseResult {
  return outcome === undefined ? "error" : resultsByOutcome[outcome];
}

function counts(cases: readonly Case[]): Readonly<Record<string, string>> {
  const count = (wanted: CaseResult) => String(cases.filter((one) => caseResult(one) === wanted).length);
  return {
    tests: String(cases.length),
    failures: count("failure"),
    errors: count("error"),
    skipped: count("skipped"),
  };
}

function seconds(milliseconds: number): string {
  return (milliseconds / 1000).toFixed(3);
}

function tag(name: string, attributes: Readonly<Record<string, string>>, end = ""): string {
  const listed = Object.entries(attributes).map(([key, value]) => ` ${key}="${xml(value).replaceAll("\n", "&#10;")}"`);
  return `<${name}${listed.join("")}${end}>`;
}

/** Text for XML 1.0, without the characters that it forbids. */
function xml(text: string): string {
  return visible(cleanText(text.toWellFormed()))
    .replaceAll(/[\uFFFE\uFFFF]/g, "\uFFFD")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** Characters of one step's output in a report (docs/reading-a-run.md, Kept output). */
const mostOfStep = 1 << 20;
/** Characters of all outputs in a report. */
const mostInAll = 64 << 20;

/**
 * A function for the output of a step (of a node) or an action, from a run's events: the last whole lines, and the number of lines before.
 * Once a report is full, the function returns the last lines in the model instead.
 */
function wholeOutputs(events: readonly RunEvent[]): (work: Work, node?: string) => string {
  const found = new Map<string, { text: string; lines: number }>();
  for (const event of events) {
    // A step that begins again, in a resumed run or after a reboot, replaces its former output.
    if (event.type === "step.started" || event.type === "action.started") found.delete(outputKey(event));
    if (event.type !== "step.output" && event.type !== "action.output") continue;
    const { text, lines } = found.get(outputKey(event)) ?? { text: "", lines: 0 };
    const whole = text + event.text;
    // The text grows to twice the limit before a cut, because each cut copies the rest.
    const kept = whole.length > 2 * mostOfStep ? lastLines(whole, mostOfStep) : whole;
    found.set(outputKey(event), { text: kept, lines: lines + linesIn(event.text) });
  }
  let left = mostInAll;
  return (work, node = "") => {
    const key = outputKey("step" in work ? { node, step: work.step } : work);
    const { text, lines } = found.get(key) ?? { text: "", lines: 0 };
    const kept = lastLines(text, mostOfStep);
    const isTooMuch = kept.length > left;
    const shown = isTooMuch ? work.tail : kept;
    if (!isTooMuch) left -= kept.length;
    const before = isTooMuch ? (work.above ?? 0) : lines - linesIn(shown);
    return `${before > 0 ? `… ${before} lines before: the record has them\n` : ""}${shown.trimEnd()}`;
  };
}

function linesIn(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** The step or the action that printed an output. */
type OutputOwner =
  | { readonly node: string; readonly step: string }
  | { readonly stage: string; readonly action: string; readonly item?: string };

function outputKey(owner: OutputOwner): string {
  return JSON.stringify("step" in owner ? [owner.node, owner.step] : [owner.stage, owner.action, owner.item]);
}
