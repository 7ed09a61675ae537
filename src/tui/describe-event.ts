import { formatBytes, formatDuration, formatSending } from "#base/units.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Change, Outcome, RunEvent, Sending } from "#engine/events/event.ts";
import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import { causeFirst, causeLine } from "./cause-line.ts";
import type { Problem } from "#errors/problem.ts";
import { describeLeftOut } from "./left-out.ts";
import { outcomeLabel, stepIn } from "./work-item.ts";

/** One line of the plain view, and its mark, which shows the kind of news. */
export interface PlainLine {
  readonly mark: "started" | "done" | "failed" | "skipped" | "output" | "title" | "warning";
  readonly text: string;
}

/**
 * The lines of the plain view for an event; each names its node (or stage). `before` is the run without the event. Pure; a
 * line holds no line breaks and no control characters.
 */
export function describeEvent(before: RunModel, event: RunEvent): readonly PlainLine[] {
  return describe(before, event).flatMap(({ mark, text }) =>
    cleanText(text)
      .split("\n")
      .map((line) => ({ mark, text: line.trimEnd() })),
  );
}

function describe(before: RunModel, event: RunEvent): readonly PlainLine[] {
  switch (event.type) {
    case "run.started":
      return [
        { mark: "title", text: runTitle(event) },
        ...(event.leftOut ? [{ mark: "warning", text: describeLeftOut(event.leftOut) } as const] : []),
      ];
    case "run.stopping": {
      const how = event.how === "stop" ? "stopping: no new step starts" : "aborting: the running steps are ended";
      return [{ mark: "warning", text: `${how} (${event.by})` }];
    }
    case "run.finished":
    case "node.facts":
    case "node.segment":
    case "question.answered":
    case "stage.started":
    case "step.started":
      return [];
    case "stage.finished":
      return event.outcome === "skipped"
        ? [{ mark: "skipped", text: `stage ${event.stage}: skipped${because(event.reason)}` }]
        : [];
    case "node.connecting":
      return event.attempt > 1 ? [nodeLine("started", event.node, `connecting, attempt ${event.attempt}`)] : [];
    case "node.connected":
      return [nodeLine("done", event.node, `connected${event.fingerprint ? `  ${event.fingerprint}` : ""}`)];
    case "node.disconnected":
      return [nodeLine("warning", event.node, `connection lost: ${event.reason}${retryText(event.retryIn)}`)];
    case "node.waiting":
      return [nodeLine("started", event.node, `waiting: ${event.reason}`)];
    case "node.rebooted":
      return [nodeLine("done", event.node, "rebooted")];
    case "node.saved":
      return [nodeLine("done", event.node, savedText(event))];
    case "node.unsaved":
      return [nodeLine("output", event.node, `${event.device} is unchanged: its saved table is not kept`)];
    case "node.sending":
      return isReported(before, event) ? [nodeLine("output", event.node, sendingText(event))] : [];
    case "node.sent":
      return [nodeLine("done", event.node, sentText(event))];
    case "node.milestone":
      return [nodeLine("done", event.node, `milestone ${event.milestone}`)];
    case "node.finished":
      return describeNodeEnd(before, event);
    case "step.note": {
      const title = stepIn(before, event)?.title ?? event.step;
      return [...lateStart(before, event), nodeLine("output", event.node, `${title}: ${event.text}`)];
    }
    case "step.output":
      return [...lateStart(before, event), ...outputLines(event.node, event)];
    case "step.finished":
      return describeStepEnd(event);
    case "action.started":
      return [nodeLine("started", event.item ?? "bastion", `${event.stage}: ${event.action}`)];
    case "action.output":
      return outputLines(event.item ?? "bastion", event);
    case "action.note":
      return [nodeLine("output", event.item ?? "bastion", `${event.stage}: ${event.text}`)];
    case "action.finished":
      return describeActionEnd(event);
    case "question.asked":
      return [nodeLine("title", event.question.node ?? "kcore", `asks: ${event.question.text}`)];
    case "warning":
      return [nodeLine("warning", event.node ?? "kcore", event.text)];
  }
}

/** A saved table of a disk and the reason of the save: “saved the table of /dev/sda before it may be wiped (3f…)”. */
export function savedText({ device, save, before }: NonNullable<NodeModel["saved"]>[number]): string {
  const why = before === "wipe" ? "it may be wiped" : "an earlier one is put back";
  return `saved the table of ${device} before ${why} (${save.slice(0, 12)})`;
}

/** A content on its way: “sending kcore-0.1.0  31.2/44.0 MB  8.4 MB/s”. */
export function sendingText(sending: Sending): string {
  return `sending ${sending.name}${sourceText(sending)}  ${formatSending(sending)}`;
}

/** A content that has arrived: “sent kcore-0.1.0  44.0 MB  5.2 s”. */
export function sentText({ name, bytes, duration, from }: NonNullable<NodeModel["sent"]>[number]): string {
  return `sent ${name}${sourceText({ from })}  ${formatBytes(bytes)}  ${formatDuration(duration)}`;
}

function sourceText({ from }: { readonly from?: string | undefined }): string {
  return from === undefined ? "" : ` from ${from}`;
}

/** Whether a line reports this progress of a content: the first progress, then one for each tenth. */
function isReported(model: RunModel, { node, name, sent, total }: Of<"node.sending">): boolean {
  const before = model.nodes.get(node)?.sending;
  const tenth = (bytes: number) => Math.floor((bytes * 10) / total);
  return before?.name !== name || tenth(sent) > tenth(before.sent);
}

type Of<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

/** A line that begins with the name `who`; so does each further line of its text. */
export function nodeLine(mark: PlainLine["mark"], who: string, text: string): PlainLine {
  return { mark, text: `${who}  ${text.replaceAll("\n", `\n${who}  `)}` };
}

function runTitle({ title, runId, nodes, dryRun, revision, dirty, resumed }: Of<"run.started">): string {
  const at = revision === undefined ? "" : ` at ${revision.slice(0, 12)}${dirty ? " (with changes)" : ""}`;
  const shown = nodes.length > 12 ? `${nodes.slice(0, 12).join(", ")} and ${nodes.length - 12} more` : nodes.join(", ");
  const count = nodes.length === 1 ? "1 node" : `${nodes.length} nodes`;
  return `${title}${dryRun ? " (dry run: nothing is changed)" : ""}${resumed ? ", resumed" : ""} — run ${runId}${at} — ${count}: ${shown}`;
}

/** The line with a step's name before its first output or note; a step without either is named at its end. */
function lateStart(before: RunModel, event: Of<"step.note"> | Of<"step.output">): readonly PlainLine[] {
  const step = stepIn(before, event);
  return step?.tail === "" && step.note === undefined ? [nodeLine("started", event.node, step.title)] : [];
}

function outputLines(
  who: string,
  { text, stream, skipped }: Of<"step.output" | "action.output">,
): readonly PlainLine[] {
  const bar = stream === "err" ? "!" : "|";
  const gap = skipped ? [nodeLine("output", who, `… ${skipped} bytes left out`)] : [];
  const lines = cleanText(text).replace(/\n$/, "").split("\n");
  return [...gap, ...lines.map((one) => nodeLine("output", who, `${bar} ${one}`))];
}

/** The mark of an outcome in lines. */
const endMarks: Readonly<Record<Outcome, PlainLine["mark"]>> = {
  ok: "done",
  changed: "done",
  "would-change": "done",
  unknown: "skipped",
  skipped: "skipped",
  interrupted: "warning",
  failed: "failed",
};

/** A duration for the end of a line; empty below one second. */
function tookText(duration = 0): string {
  return duration >= 1000 ? `  ${formatDuration(duration)}` : "";
}

function describeStepEnd(event: Of<"step.finished">): readonly PlainLine[] {
  const { node, title, outcome, reason, changes = [], diff, problem, duration, always } = event;
  const why = outcome === "failed" && problem ? `: ${causeLine(event)} [${problem.code}]` : "";
  const end = `${title}  ${outcomeLabel(outcome, always)}${why}${because(reason)}${tookText(duration)}`;
  const hasDetails = outcome === "changed" || outcome === "would-change" || outcome === "failed";
  const details = changes.map((change) => nodeLine("output", node, `  ${describeChange(change)}`));
  return [nodeLine(endMarks[outcome], node, end), ...(hasDetails ? [...details, ...describeDiff(node, diff)] : [])];
}

function describeChange({ name, have, want }: Change): string {
  return `${name}: ${have === undefined ? "(absent)" : short(have)} → ${short(want)}`;
}

/** The start of a value's first line, and the number of its lines: a value may be a whole file. */
function short(value: string): string {
  const [first = "", ...more] = value.split("\n");
  const cut = first.length > 120 ? `${first.slice(0, 120)}…` : first;
  return more.length > 0 ? `${cut} … (${more.length + 1} lines)` : cut === "" ? "(empty)" : cut;
}

/** The lines of a diff, with the node's name; empty without a diff. */
export function describeDiff(node: string, diff: string | undefined): readonly PlainLine[] {
  if (!diff) return [];
  return diff
    .replace(/\n$/, "")
    .split("\n")
    .map((one) => nodeLine("output", node, `  ${one}`));
}

function describeNodeEnd(before: RunModel, { node, outcome, problem }: Of<"node.finished">): readonly PlainLine[] {
  if (outcome === "done") return [nodeLine("done", node, "done")];
  const isKnown = before.nodes.get(node)?.steps.some((step) => step.outcome === "failed");
  const why = problem && !isKnown ? `: ${shortProblem(problem)}` : "";
  const mark = outcome === "interrupted" ? "warning" : outcome === "not-started" ? "skipped" : "failed";
  return [nodeLine(mark, node, `${outcome.replace("-", " ")}${why}`)];
}

function describeActionEnd(event: Of<"action.finished">): readonly PlainLine[] {
  const { stage, action, item = "bastion", outcome, reason, problem, duration } = event;
  const why = problem ? `: ${shortProblem(causeFirst(problem))}` : "";
  const end = `${stage}: ${action}  ${outcomeLabel(outcome)}${why}${because(reason)}${tookText(duration)}`;
  return [nodeLine(endMarks[outcome], item, end)];
}

function shortProblem({ code, message }: Problem): string {
  return `${message} [${code}]`;
}

function because(reason: string | undefined): string {
  return reason ? ` (${reason})` : "";
}

function retryText(retryIn: number | undefined): string {
  return retryIn === undefined ? "" : `, trying again in ${formatDuration(retryIn)}`;
}
