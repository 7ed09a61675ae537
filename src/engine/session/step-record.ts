import { KcoreError, type Problem } from "#errors/problem.ts";
import type { ErrorCode } from "#errors/codes.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Outcome } from "#engine/events/event.ts";
import { shapeFacts } from "#engine/facts/shape.ts";
import { unescapeLine } from "#engine/program/frames.ts";
import type { PlannedStep, Registered, UnresolvedStep } from "#engine/states/planned-step.ts";
import { setFact, type NodeBudget } from "./node-budget.ts";

/** Characters that are kept of a refusal. */
const refusalLimit = 16_384;

/** One step of the node, as its frames describe it so far. */
export interface StepRecord {
  readonly draft: UnresolvedStep;
  readonly stage: string;
  plan?: PlannedStep | undefined;
  outcome?: Outcome;
  /** The facts that the probe found before the apply. */
  have: Record<string, string>;
  /** The facts that the probe found after the apply. */
  now: Record<string, string>;
  /** The present text of a file, for a diff. */
  shown?: string;
  stdout: string;
  rc: number;
  /** The refusal that the step reported. */
  problem?: Problem;
  /** Why the step failed; set at its end. */
  cause?: Problem;
  /** The reason for the step's start. */
  why?: string;
  /** The outcome in a dry run depends on another step (`unless KEY …`). */
  isConditional?: boolean;
  startedAt?: number;
  /** The apply began and has not ended. If the step is found in order later, this run has changed it. */
  applying?: boolean;
  errors: string;
  /** The step was started and has not ended. */
  isOpen?: boolean;
  /** Number of starts. */
  starts: number;
  /** Characters of the node's frames that this record keeps. */
  kept: number;
}

/** Outcomes by their words in `end` frames. */
export const outcomes: ReadonlyMap<string, Outcome> = new Map([
  ["ok", "ok"],
  ["changed", "changed"],
  ["would", "would-change"],
  ["skipped", "skipped"],
  ["unknown", "unknown"],
  ["failed", "failed"],
  ["interrupted", "interrupted"],
]);

export function newRecord(draft: UnresolvedStep, stage: string): StepRecord {
  return { draft, stage, have: {}, now: {}, stdout: "", rc: 0, errors: "", starts: 0, kept: 0 };
}

/** Whether a step with this outcome is not sent again (next-segment.ts). */
export function isFinal(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome !== "failed" && outcome !== "interrupted";
}

/** Begins another attempt of the step. If an apply was cut off, its values stay: the end of the new attempt reports the change of both. */
export function beginAttempt(record: StepRecord, now: number, budget: NodeBudget): void {
  record.starts += 1;
  releaseValues(record, budget);
  if (!record.applying) Object.assign(record, { have: {}, startedAt: now });
  Object.assign(record, { now: {}, stdout: "", rc: 0, errors: "", isOpen: true });
  for (const name of ["problem", "cause", "why"] as const) delete record[name];
  if (!record.applying) delete record.shown;
}

/** Keeps the value in a frame of a step. @throws KcoreError NODE_LIMIT_EXCEEDED */
export function keepValue(record: StepRecord, type: string, text: string, budget: NodeBudget): void {
  switch (type) {
    case "have":
      if (!record.applying) record.kept += setFact(record.have, text, budget);
      break;
    case "now":
      record.kept += setFact(record.now, text, budget);
      break;
    case "apply":
      if (text === "apply") record.applying = true;
      break;
    case "refused": {
      const [code = "", ...words] = truncate(text, refusalLimit).split(" ");
      const [message = "", ...detail] = cleanText(unescapeLine(words.join(" "))).split("\n");
      const more = detail.join("\n").trim();
      record.problem = { code: truncate(code, 64) as ErrorCode, message, ...(more !== "" && { detail: more }) };
      break;
    }
    case "rc":
      record.rc = Number(text.replace(/ same$/, "")) || 0;
      if (text.endsWith(" same")) record.applying = false;
      break;
    case "show":
      if (!record.applying) record.shown = keepText(record, unescapeLine(text), budget);
      break;
    case "stdout":
      // `sed` ends each line, the last too, with the escape of a line break.
      record.stdout = keepText(record, unescapeLine(text).replace(/\n$/, "").replace(/\n$/, ""), budget);
      break;
    default:
  }
}

function keepText(record: StepRecord, text: string, budget: NodeBudget): string {
  budget.keep(text.length);
  record.kept += text.length;
  return text;
}

/** Drops the values of an ended step, except those that other steps may use. */
export function dropValues(record: StepRecord, budget: NodeBudget): void {
  delete record.shown;
  if (!isFinal(record.outcome) || record.draft.register !== undefined) return;
  Object.assign(record, { have: {}, now: {}, stdout: "" });
  releaseValues(record, budget);
}

function releaseValues(record: StepRecord, budget: NodeBudget): void {
  budget.release(record.kept);
  record.kept = 0;
}

/** The result that the step registers; undefined: there is no such step, or a dry run cannot know its result. */
export function registeredResult(record: StepRecord | undefined): Registered | undefined {
  if (!record || record.outcome === "would-change" || record.outcome === "unknown" || record.isConditional)
    return undefined;
  const facts = Object.keys(record.now).length > 0 ? record.now : record.have;
  return { changed: record.outcome === "changed", rc: record.rc, stdout: record.stdout, facts };
}

/**
 * The plan of a step that an earlier process of this run sent, rendered with the results of the steps before it; undefined: it cannot be
 * planned any more.
 */
export function planAgain(
  records: ReadonlyMap<string, StepRecord>,
  facts: Readonly<Record<string, string>>,
  step: UnresolvedStep,
): PlannedStep | undefined {
  const { steps, facts: needsFacts } = step.needs;
  const all = [...records.values()];
  const registered = steps.map(
    (name) => [name, registeredResult(all.find(({ draft }) => draft.register === name))] as const,
  );
  try {
    const rendered = step.render({ steps: new Map(registered), ...(needsFacts && { facts: shapeFacts(facts) }) });
    return rendered.kind === "step" ? rendered.plan : undefined;
  } catch (error) {
    if (error instanceof KcoreError) return undefined;
    throw error;
  }
}

/** The text's first characters, with a mark if more followed. The copy does not keep a longer text in memory. */
export function truncate(text: string, characters: number): string {
  if (text.length <= characters) return text;
  return `${Buffer.from(text.slice(0, characters).toWellFormed()).toString("utf8")}…`;
}
