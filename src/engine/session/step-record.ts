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
  shown?: string | undefined;
  stdout: string;
  rc: number;
  /** The refusal that the step reported. */
  problem?: Problem;
  /** Why the step failed; set at its end. */
  cause?: Problem;
  /** The reason for the step's start. */
  why?: string;
  /** Another step decides the outcome in a dry run: the `end` frame has `unless KEY` (docs/runner.md). */
  isConditional?: boolean;
  startedAt?: number;
  /** The apply began and has not ended. If the step is found in order later, this run has changed it. */
  applying?: boolean;
  /** The last lines of stderr. */
  stderrEnd: string;
  /** The step was started and has not ended. */
  isOpen?: boolean;
  starts: number;
  /** Characters of each value that count in the node's budget. */
  readonly kept: Record<Value, number>;
}

/** A part of a record that comes from frames of any length. */
type Value = "have" | "now" | "shown" | "stdout";

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
  const kept = { have: 0, now: 0, shown: 0, stdout: 0 };
  return { draft, stage, ...noValues(), rc: 0, stderrEnd: "", starts: 0, kept };
}

/** Whether a step with this outcome is not sent again (next-segment.ts). */
export function isFinal(outcome: Outcome | undefined): boolean {
  return outcome !== undefined && outcome !== "failed" && outcome !== "interrupted";
}

/** Begins another attempt. After a cut-off apply `have`, `shown` and `startedAt` stay: the end reports the changes of both attempts. */
export function beginAttempt(record: StepRecord, now: number, budget: NodeBudget): void {
  record.starts += 1;
  if (!record.applying) {
    drop(record, ["have", "shown"], budget);
    record.startedAt = now;
  }
  drop(record, ["now", "stdout"], budget);
  Object.assign(record, { rc: 0, stderrEnd: "", isOpen: true });
  for (const name of ["problem", "cause", "why"] as const) delete record[name];
}

/** Keeps the value in a frame of a step. @throws KcoreError NODE_LIMIT_EXCEEDED */
export function keepValue(record: StepRecord, type: string, text: string, budget: NodeBudget): void {
  switch (type) {
    case "have":
      if (!record.applying) record.kept.have += setFact(record.have, text, budget);
      break;
    case "now":
      record.kept.now += setFact(record.now, text, budget);
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
      if (!record.applying) keepText(record, "shown", unescapeLine(text), budget);
      break;
    case "stdout":
      // k_stdout (runner-on-demand.sh) ends every line with a line break, the last one, too. An empty last line is dropped as well.
      keepText(record, "stdout", unescapeLine(text).replace(/\n{1,2}$/, ""), budget);
      break;
    default:
  }
}

function keepText(record: StepRecord, name: "shown" | "stdout", text: string, budget: NodeBudget): void {
  budget.keep(text.length);
  record.kept[name] += text.length;
  record[name] = text;
}

/** Drops `shown`, and the other values of a step with a final outcome that does not register its result. */
export function dropValues(record: StepRecord, budget: NodeBudget): void {
  drop(record, ["shown"], budget);
  if (isFinal(record.outcome) && record.draft.register === undefined) drop(record, ["have", "now", "stdout"], budget);
}

function drop(record: StepRecord, names: readonly Value[], budget: NodeBudget): void {
  const none = noValues();
  for (const name of names) {
    budget.release(record.kept[name]);
    record.kept[name] = 0;
    Object.assign(record, { [name]: none[name] });
  }
}

function noValues(): Pick<StepRecord, Value> & { readonly shown: undefined } {
  return { have: {}, now: {}, shown: undefined, stdout: "" };
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
