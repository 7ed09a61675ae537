import type { Problem } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Outcome, RunEventBody } from "#engine/events/event.ts";
import { rawBytes, type NewOutput } from "./step-output.ts";
import { changesOf, isHidden, stepProblem } from "./step-problem.ts";
import type { StepRecord } from "./step-record.ts";

type StepRecords = ReadonlyMap<string, StepRecord>;
type StepFinished = Extract<RunEventBody, { type: "step.finished" }>;

export function stepStartedEvent({ draft, stage }: StepRecord, node: string): RunEventBody {
  const { id: step, title, module } = draft;
  return { type: "step.started", node, stage, step, title, module };
}

/** The event of new output; undefined: it stays hidden. */
export function outputEvent(
  { draft, plan }: StepRecord,
  { node, stream, made }: { node: string; stream: "out" | "err"; made: NewOutput },
): RunEventBody | undefined {
  if (isHidden(plan)) return undefined;
  return {
    type: "step.output",
    node,
    step: draft.id,
    stream,
    text: made.text,
    ...(plan?.exact && rawBytes(made)),
    ...(made.skipped > 0 && { skipped: made.skipped }),
  };
}

/** The event of an ended step. `rc`: the status in the step's `end` frame. */
export function finishedEvent(
  record: StepRecord,
  outcome: Outcome,
  { node, rc, reason, now }: { node: string; rc: string; reason: string; now: number },
): StepFinished {
  const { draft, plan, stage, startedAt } = record;
  const changes = outcome === "ok" || outcome === "skipped" ? [] : changesOf(record);
  const always =
    plan?.step.always === true && plan.step.tells !== true && plan.creates === undefined && plan.unless === undefined;
  // The exit status of a step that the runner ended is that of the runner's signal.
  const wasEnded = rc === "timeout" || rc.startsWith("stalled:");
  return {
    type: "step.finished",
    node,
    stage,
    step: draft.id,
    title: draft.title,
    module: draft.module,
    outcome,
    position: draft.at,
    ...(changes.length > 0 && { changes }),
    ...(reason !== "" && { reason }),
    ...(outcome === "failed" && record.cause && { problem: record.cause }),
    // The status of a check of severity `warning`, which counts as in order, says that it does not hold.
    ...(outcome === "ok" && rc !== "0" && plan?.severity === "warning" && { warning: stepProblem(record, rc) }),
    ...(startedAt !== undefined && { duration: now - startedAt }),
    ...(always && { always }),
    ...(outcome === "failed" && !wasEnded && record.rc !== 0 && { exitStatus: record.rc }),
  };
}

/** The event for a check that does not hold and counts as in order. */
export function warningEvent(node: string, { message, hint }: Problem): RunEventBody {
  return { type: "warning", node, text: cleanText(hint === undefined ? message : `${message}; ${hint}`) };
}

/** The event for a step whose change the node reverted, because a later step of the same trial failed. */
export function revertedEvent({ draft, stage }: StepRecord, node: string, failed: StepRecord): StepFinished {
  const { id: step, title, module, at: position } = draft;
  const reason = `taken back: it was on trial with “${failed.draft.title}”`;
  return { type: "step.finished", node, stage, step, title, module, position, outcome: "interrupted", reason };
}

/** The changed steps that are on trial together with the failed step, right before it: the node reverts them. */
export function onTrialWith(records: StepRecords, key: string): readonly StepRecord[] {
  if (records.get(key)?.plan?.risk === undefined) return [];
  const keys = [...records.keys()];
  const before = keys.slice(0, keys.indexOf(key)).map((one) => records.get(one) as StepRecord);
  const tried = before.slice(before.findLastIndex(({ plan }) => plan?.risk === undefined) + 1);
  return tried.filter(({ outcome }) => outcome === "changed");
}

/** The problem of a reverted trial, with the titles of its steps and the reason why no new connection came. */
export function trialProblem(problem: Problem, tried: readonly StepRecord[], connectProblem: string): Problem {
  if (problem.code !== "CONNECTIVITY_REVERTED") return problem;
  const names = tried.map(({ draft }) => `“${draft.title}”`).join(", ");
  const last = connectProblem === "" ? "" : `; the last attempt: ${connectProblem}`;
  return { ...problem, message: `${problem.message.replace("the change", names)}${last}` };
}

/** The reason in an `end` frame: `after KEY` of an unknown step, or the condition `unless KEY …`, with the steps' titles. */
export function endReason(records: StepRecords, outcome: Outcome, [word, ...rest]: readonly string[]): string {
  const titles = rest.flatMap((key) => records.get(key)?.draft.title ?? []).join(" or ");
  if (titles !== "" && word === "after") return `after ${titles}`;
  if (titles !== "" && word === "unless")
    return `unless ${titles} ${outcome === "would-change" ? "brings" : "changes"} it`;
  return [word, ...rest].join(" ");
}

/** The reason for an outcome if the `end` frame names none. `lastChange`: the last step that would change in a dry run. */
export function defaultReason(
  { plan, why = "" }: StepRecord,
  outcome: Outcome,
  lastChange: string | undefined,
): string {
  if (outcome === "changed" || outcome === "would-change") return why;
  if (outcome !== "unknown") return "";
  if (plan?.step.tells && lastChange === undefined) return "only running it tells";
  return `after ${lastChange ?? "an earlier step"}`;
}

/** The reason in a `start` frame: an owed reaction, or the step that changed. */
export function startReason(records: StepRecords, why: string): string {
  if (why === "owed") return "a reaction owed since an earlier run";
  const changed = records.get(why.replace("changed ", ""));
  return changed ? `because “${changed.draft.title}” changed` : "because something it watches changed";
}
