import { formatBytes, formatDuration, formatSending } from "#base/units.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Change, RunEvent, Sending } from "#engine/events/event.ts";
import type { NodeModel, RunModel, StepModel } from "#engine/events/run-model.ts";
import { causeFirst, causeLine } from "./cause-line.ts";
import type { Problem } from "#errors/problem.ts";
import type { PlainLine } from "./line.ts";

/**
 * What the plain view says about an event: lines that each name their node (or stage). `before` is the run without the
 * event. Pure; a line holds no line breaks and no control characters.
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
      return [{ mark: "title", text: titleOf(event) }];
    case "run.stopping":
      return [
        {
          mark: "warning",
          text: `${event.how === "stop" ? "stopping: no new step starts" : "aborting: the running steps are ended"} (${event.by})`,
        },
      ];
    case "run.finished":
    case "node.facts":
    case "node.segment":
    case "question.answered":
      return [];
    case "stage.started":
      return [];
    case "stage.finished":
      return event.outcome === "skipped"
        ? [{ mark: "skipped", text: `stage ${event.stage}: skipped${because(event.reason)}` }]
        : [];
    case "node.connecting":
      return event.attempt > 1 ? [line("started", event.node, `connecting, attempt ${event.attempt}`)] : [];
    case "node.connected":
      return [line("done", event.node, `connected${event.fingerprint ? `  ${event.fingerprint}` : ""}`)];
    case "node.disconnected":
      return [line("warning", event.node, `connection lost: ${event.reason}${retry(event.retryIn)}`)];
    case "node.waiting":
      return [line("started", event.node, `waiting: ${event.reason}`)];
    case "node.rebooted":
      return [line("done", event.node, "rebooted")];
    case "node.saved":
      return [line("done", event.node, savedText(event))];
    case "node.unsaved":
      return [line("output", event.node, `${event.device} is unchanged: its saved table is not kept`)];
    case "node.sending":
      return isTold(before, event) ? [line("output", event.node, sendingText(event))] : [];
    case "node.sent":
      return [line("done", event.node, sentText(event))];
    case "node.milestone":
      return [line("done", event.node, `milestone ${event.milestone}`)];
    case "node.finished":
      return describeNodeEnd(before, event);
    case "step.started":
      return [];
    case "step.note":
      return [...lateStart(before, event), line("output", event.node, `${titleIn(before, event)}: ${event.text}`)];
    case "step.output":
      return [...lateStart(before, event), ...outputLines(event.node, event)];
    case "step.finished":
      return describeStepEnd(event);
    case "action.started":
      return [line("started", event.item ?? "bastion", `${event.stage}: ${event.action}`)];
    case "action.output":
      return outputLines(event.item ?? "bastion", event);
    case "action.note":
      return [line("output", event.item ?? "bastion", `${event.stage}: ${event.text}`)];
    case "action.finished":
      return describeActionEnd(event);
    case "question.asked":
      return [line("title", event.question.node ?? "kcore", `asks: ${event.question.text}`)];
    case "warning":
      return [line("warning", event.node ?? "kcore", event.text)];
  }
}

/** What of a disk was saved. */
export function savedText({ device, save, before }: NonNullable<NodeModel["saved"]>[number]): string {
  const why = before === "wipe" ? "it may be wiped" : "an earlier one is put back";
  return `saved the table of ${device} before ${why} (${save.slice(0, 12)})`;
}

/** What is on its way: “sending kcore-0.1.0  31.2/44.0 MB  8.4 MB/s”. */
export function sendingText(sending: Sending): string {
  return `sending ${sending.name}${by(sending)}  ${formatSending(sending)}`;
}

/** What is there. */
export function sentText({ name, bytes, duration, from }: NonNullable<NodeModel["sent"]>[number]): string {
  return `sent ${name}${by({ from })}  ${formatBytes(bytes)}  ${formatDuration(duration)}`;
}

function by({ from }: { readonly from?: string | undefined }): string {
  return from === undefined ? "" : ` from ${from}`;
}

/** In lines of a log: the first, and one for each tenth of it. */
function isTold(model: RunModel, { node, name, sent, total }: Of<"node.sending">): boolean {
  const before = model.nodes.get(node)?.sending;
  const tenth = (bytes: number) => Math.floor((bytes * 10) / total);
  return before?.name !== name || tenth(sent) > tenth(before.sent);
}

type Of<Type extends RunEvent["type"]> = Extract<RunEvent, { type: Type }>;

/** A line that names whom it is about, and each line of its text. */
export function line(mark: PlainLine["mark"], who: string, text: string): PlainLine {
  return { mark, text: `${who}  ${text.replaceAll("\n", `\n${who}  `)}` };
}

function titleOf({ title, runId, nodes, dryRun, revision, dirty, resumed }: Of<"run.started">): string {
  const at = revision === undefined ? "" : ` at ${revision.slice(0, 12)}${dirty ? " (with changes)" : ""}`;
  const shown = nodes.length > 12 ? `${nodes.slice(0, 12).join(", ")} and ${nodes.length - 12} more` : nodes.join(", ");
  const count = nodes.length === 1 ? "1 node" : `${nodes.length} nodes`;
  return `${title}${dryRun ? " (dry run: nothing is changed)" : ""}${resumed ? ", resumed" : ""} — run ${runId}${at} — ${count}: ${shown}`;
}

/** A step is named before its first output; one that says nothing is named when it ends. */
function lateStart(before: RunModel, event: Of<"step.note"> | Of<"step.output">): readonly PlainLine[] {
  const step = stepIn(before, event);
  return step && step.tail === "" && step.note === undefined ? [line("started", event.node, step.title)] : [];
}

function stepIn(
  model: RunModel,
  { node, step }: { readonly node: string; readonly step: string },
): StepModel | undefined {
  return model.nodes.get(node)?.steps.findLast((one) => one.step === step);
}

function titleIn(model: RunModel, event: { readonly node: string; readonly step: string }): string {
  return stepIn(model, event)?.title ?? event.step;
}

function outputLines(
  who: string,
  { text, stream, skipped }: Of<"step.output" | "action.output">,
): readonly PlainLine[] {
  const bar = stream === "err" ? "!" : "|";
  const gap = skipped ? [line("output", who, `… ${skipped} bytes left out`)] : [];
  const lines = cleanText(text).replace(/\n$/, "").split("\n");
  return [...gap, ...lines.map((one) => line("output", who, `${bar} ${one}`))];
}

function describeStepEnd(event: Of<"step.finished">): readonly PlainLine[] {
  const { node, title, outcome, reason, changes = [], diff, problem, duration, always } = event;
  const time = duration !== undefined && duration >= 1000 ? `  ${formatDuration(duration)}` : "";
  const tell = (mark: PlainLine["mark"], what: string) =>
    line(mark, node, `${title}  ${what}${because(reason)}${time}`);
  const details = [
    ...changes.map((change) => line("output", node, `  ${describeChange(change)}`)),
    ...describeDiff(node, diff),
  ];
  switch (outcome) {
    case "ok":
      return [tell("done", "in order")];
    case "changed":
      return [tell("done", always ? "ran (always changes)" : "changed"), ...details];
    case "would-change":
      return [tell("done", always ? "would run (always changes)" : "would change"), ...details];
    case "unknown":
      return [tell("skipped", "unknown")];
    case "skipped":
      return [tell("skipped", "skipped")];
    case "interrupted":
      return [tell("warning", "interrupted")];
    case "failed":
      return [tell("failed", `failed${problem ? `: ${causeLine(event)} [${problem.code}]` : ""}`), ...details];
  }
}

function describeChange({ name, have, want }: Change): string {
  return `${name}: ${have === undefined ? "(absent)" : short(have)} → ${short(want)}`;
}

/** Values of changes are facts, of any length; a line shows their start. */
function short(value: string): string {
  const [first = "", ...more] = value.split("\n");
  const cut = first.length > 120 ? `${first.slice(0, 120)}…` : first;
  return more.length > 0 ? `${cut} … (${more.length + 1} lines)` : cut === "" ? "(empty)" : cut;
}

export function describeDiff(node: string, diff: string | undefined): readonly PlainLine[] {
  if (!diff) return [];
  return diff
    .replace(/\n$/, "")
    .split("\n")
    .map((one) => line("output", node, `  ${one}`));
}

function describeNodeEnd(before: RunModel, { node, outcome, problem }: Of<"node.finished">): readonly PlainLine[] {
  const isTold = before.nodes.get(node)?.steps.some((step) => step.outcome === "failed");
  const why = problem && !isTold ? `: ${shortProblem(problem)}` : "";
  switch (outcome) {
    case "done":
      return [line("done", node, "done")];
    case "failed":
      return [line("failed", node, `failed${why}`)];
    case "unreachable":
      return [line("failed", node, `unreachable${why}`)];
    case "interrupted":
      return [line("warning", node, `interrupted${why}`)];
    case "not-started":
      return [line("skipped", node, `not started${why}`)];
  }
}

function describeActionEnd(event: Of<"action.finished">): readonly PlainLine[] {
  const { stage, action, item = "bastion", outcome, reason, problem, duration } = event;
  const time = duration !== undefined && duration >= 1000 ? `  ${formatDuration(duration)}` : "";
  const words = {
    ok: ["done", "in order"],
    changed: ["done", "changed"],
    "would-change": ["done", "would change"],
    unknown: ["skipped", "unknown"],
    skipped: ["skipped", "skipped"],
    interrupted: ["warning", "interrupted"],
    failed: ["failed", "failed"],
  } as const;
  const [mark, word] = words[outcome];
  const why = problem ? `: ${shortProblem(causeFirst(problem))}` : "";
  return [line(mark, item, `${stage}: ${action}  ${word}${why}${because(reason)}${time}`)];
}

function shortProblem({ code, message }: Problem): string {
  return `${message} [${code}]`;
}

function because(reason: string | undefined): string {
  return reason ? ` (${reason})` : "";
}

function retry(retryIn: number | undefined): string {
  return retryIn === undefined ? "" : `, trying again in ${formatDuration(retryIn)}`;
}
