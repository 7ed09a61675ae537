import type { Problem } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Emit, Outcome, RunEventBody } from "#engine/events/event.ts";
import { lastLines } from "#engine/events/whole-lines.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { unescapeLine, type Frame } from "#engine/program/frames.ts";
import type { ManagedRemnant } from "#engine/states/remnants.ts";
import type { PlannedStep, Registered, UnresolvedStep } from "#engine/states/planned-step.ts";
import { unifiedDiff } from "./file-diff.ts";
import { NodeBudget, setFact } from "./node-budget.ts";
import type { StepResults } from "./session-events.ts";
import {
  defaultReason,
  endReason,
  finishedEvent,
  onTrialWith,
  outputEvent,
  revertedEvent,
  stepStartedEvent,
  startReason,
  trialProblem,
  warningEvent,
} from "./step-end.ts";
import { StepEvents } from "./step-events.ts";
import { StepOutput, type NewOutput } from "./step-output.ts";
import { isHidden, stepProblem } from "./step-problem.ts";
import {
  beginAttempt,
  dropValues,
  isFinal,
  keepValue,
  newRecord,
  outcomes,
  planAgain,
  registeredResult,
  truncate,
  type StepRecord,
} from "./step-record.ts";

/** Starts of a step in a session, beyond those in the record. Reboots, dead runners and resumed runs start a step again. */
const maxStarts = 32;
/** Characters that are kept of a note, of a milestone or reason, and of a failed step's stderr. */
const limits = { note: 65_536, word: 1024, stderr: 4096 };
/** Characters of the node's budget that a frame, an event and a diff cost beside their text. */
const cost = { frame: 128, event: 512, diff: 65_536 };

/**
 * The results of one node's steps, made from the node's frames, and reported as events. Frames with an unknown key are ignored: a node
 * cannot name anything new (requirement S-4).
 */
export class StepReport implements StepResults {
  readonly #node: string;
  readonly #now: () => number;
  readonly events: StepEvents;
  readonly #output: StepOutput;
  readonly records = new Map<string, StepRecord>();
  readonly facts: Record<string, string> = {};
  /** Why the last connection that should confirm a change failed. */
  connectProblem = "";
  /** Grants that the node has used, or their fingerprints. */
  readonly wiping = new Set<string>();
  readonly budget: NodeBudget;
  /** Title of the last step that would change in a dry run; later steps can be unknown because of it. */
  #lastChange: string | undefined;

  constructor(options: {
    node: string;
    emit: Emit;
    recorded: ReadonlyMap<string, readonly Outcome[]>;
    now?: () => number;
    /** Foreseen events wait until `events` are opened. */
    isClosed?: boolean;
  }) {
    this.#node = options.node;
    this.#now = options.now ?? Date.now;
    this.events = new StepEvents(options.emit, options.recorded, options.isClosed);
    this.#output = new StepOutput(this.#now);
    this.budget = new NodeBudget(options.node, () => this.records.size);
  }

  add(key: string, draft: UnresolvedStep, stage: string): void {
    this.records.set(key, newRecord(draft, stage));
  }

  /** Reports the given steps from now on, in this order, without those whose outcome is final. */
  expect(keys: readonly string[]): void {
    this.events.expect(keys.filter((key) => !isFinal(this.outcomeOf(key))));
  }

  /** Keeps the plan of a step that is being sent. */
  plan(key: string, plan: PlannedStep): void {
    const record = this.records.get(key);
    if (record) record.plan = plan;
  }

  /** Ends a step that the node never sees. */
  endWithoutNode(
    key: string,
    { outcome, reason, problem }: { outcome: Outcome; reason?: string; problem?: Problem },
  ): void {
    const record = this.records.get(key);
    if (record && problem) record.problem = problem;
    // A step that handles a failure has its turn now.
    const isHandler = record?.draft.answers.some((id) => this.outcomeOf(stepKey(id)) === "failed") ?? false;
    if (isHandler) this.events.skipTo(key);
    this.finish(key, outcome, { ...(reason !== undefined && { reason }), isForeseen: !isHandler });
  }

  outcomeOf(key: string): Outcome | undefined {
    return this.records.get(key)?.outcome;
  }

  wasStarted(key: string): boolean {
    return this.records.get(key)?.startedAt !== undefined;
  }

  /** The output received so far, for an attach: `KEY.STREAM.CHUNK:BYTES …`. */
  get seen(): string {
    return this.#output.seen;
  }

  /** Takes a frame about steps or facts. @throws KcoreError NODE_LIMIT_EXCEEDED */
  take({ type, rest, bytes }: Frame): void {
    const space = rest.indexOf(" ");
    const [first, text] = space < 0 ? [rest, ""] : [rest.slice(0, space), rest.slice(space + 1)];
    if (type === "fact") {
      this.budget.spend(cost.frame + text.length);
      setFact(this.facts, text, this.budget);
      return;
    }
    if (type === "quick") return this.#takeQuick(rest);
    if (type === "out") return this.#takeOutput(first, text, bytes ?? new Uint8Array());
    const record = this.records.get(first);
    // A final outcome stays: the step is not sent again.
    if (!record || (isFinal(record.outcome) && type !== "milestone")) return;
    this.budget.spend(cost.frame + text.length);
    this.#takeOfStep(first, record, type, text);
  }

  #takeOfStep(key: string, record: StepRecord, type: string, text: string): void {
    const { draft } = record;
    switch (type) {
      case "start":
        return this.#begin(key, record, text);
      case "note": {
        const note = cleanText(unescapeLine(truncate(text, limits.note)));
        this.budget.spend(note.length);
        this.#note(key, draft.id, note);
        break;
      }
      case "wiping":
        this.wiping.add(truncate(text, limits.word));
        break;
      case "retry":
        this.#note(key, draft.id, `not yet; ${truncate(text, limits.word)} more attempts`);
        break;
      case "milestone": {
        this.budget.spend(cost.event);
        const milestone = cleanText(truncate(text, limits.word));
        this.events.report(key, draft.id, { type: "node.milestone", node: this.#node, milestone });
        break;
      }
      case "end": {
        const [word = "", rc = "", ...reason] = truncate(text, limits.word).split(" ");
        const outcome = outcomes.get(word) ?? "failed";
        record.isConditional = reason[0] === "unless";
        // An open step ends once. A step that was skipped, or that its shell never reached, ends without a start.
        if (record.isOpen || outcome !== record.outcome)
          this.finish(key, outcome, { rc, reason: endReason(this.records, outcome, reason) });
        break;
      }
      default:
        keepValue(record, type, text, this.budget);
    }
  }

  #note(key: string, step: string, text: string): void {
    this.events.reportNow(key, step, { type: "step.note", node: this.#node, step, text });
  }

  #begin(key: string, record: StepRecord, why: string): void {
    const { draft } = record;
    if (record.starts >= maxStarts + this.events.recordedEnds(draft.id))
      throw this.budget.exceeded(`the start of “${draft.title}” ${maxStarts} times`);
    this.budget.spend(cost.event);
    beginAttempt(record, this.#now(), this.budget);
    record.plan ??= planAgain(this.records, this.facts, record.draft);
    this.#output.forget(key);
    this.events.begin(key, draft.id, draft.answers.length > 0 || draft.isCheck === true);
    if (why !== "") record.why = startReason(this.records, why);
    this.events.report(key, draft.id, stepStartedEvent(record, this.#node));
  }

  #takeQuick(keys: string): void {
    for (const [key] of keys.matchAll(/\S+/g)) {
      const record = this.records.get(key);
      if (!record || isFinal(record.outcome)) continue;
      this.budget.spend(cost.event);
      this.finish(key, "ok");
    }
  }

  /** Records the outcome of a step, and reports it unless the record of a resumed run holds it. */
  finish(
    key: string,
    found: Outcome,
    { rc = "0", reason = "", isForeseen = false }: { rc?: string; reason?: string; isForeseen?: boolean } = {},
  ): void {
    const record = this.records.get(key);
    if (!record) return;
    for (const made of this.#output.drain(key)) {
      const event = this.#outputEvent(record, made.stream, made);
      if (event) this.events.report(key, record.draft.id, event);
    }
    const outcome = found === "ok" && record.applying ? "changed" : found;
    record.applying = outcome === "interrupted" && record.applying === true;
    const wasCut = record.outcome !== undefined && !isFinal(record.outcome);
    const isFailedCheck = outcome === "failed" && record.draft.isCheck === true;
    const halts = !isForeseen && (wasCut || !isFinal(outcome)) ? !isFinal(outcome) && !isFailedCheck : undefined;
    record.outcome = outcome;
    record.isOpen = false;
    if (isFinal(outcome)) this.#output.forget(key);
    if (outcome === "would-change") this.#lastChange = record.draft.title;
    const reverted = outcome === "failed" ? onTrialWith(this.records, key) : [];
    for (const one of reverted) one.outcome = "interrupted";
    if (outcome === "failed")
      record.cause = trialProblem(stepProblem(record, rc), [...reverted, record], this.connectProblem);
    if (!this.events.takeRecorded(record.draft.id, outcome)) {
      for (const one of reverted) this.events.reportNew(key, revertedEvent(one, this.#node, record));
      this.#reportEnd(key, record, outcome, { rc, reason, isForeseen });
    }
    this.events.end(key, halts);
    dropValues(record, this.budget);
  }

  #reportEnd(
    key: string,
    record: StepRecord,
    outcome: Outcome,
    { rc, reason, isForeseen }: { rc: string; reason: string; isForeseen: boolean },
  ): void {
    const { plan, shown } = record;
    const why = reason || defaultReason(record, outcome, this.#lastChange);
    const event = finishedEvent(record, outcome, { node: this.#node, rc, reason: why, now: this.#now() });
    const { problem = event.warning, changes = [] } = event;
    if (event.warning) this.events.reportNew(key, warningEvent(this.#node, event.warning));
    this.budget.spend(
      cost.event + (problem?.detail?.length ?? 0) + changes.reduce((sum, one) => sum + (one.have?.length ?? 0), 0),
    );
    const target = plan?.step.shown;
    if (shown === undefined || target === undefined || isHidden(plan))
      return this.events.reportNew(key, event, { isForeseen });
    this.budget.spend(cost.diff);
    const complete = async (): Promise<RunEventBody> => {
      const diff = await unifiedDiff(shown, target);
      return { ...event, ...(diff !== undefined && { diff: cleanText(diff) }) };
    };
    this.events.reportNew(key, event, { complete });
  }

  /** Why a step failed; undefined for a step that did not fail. */
  problemOf(key: string): Problem | undefined {
    return this.records.get(key)?.cause;
  }

  registered(key: string): Registered | undefined {
    return registeredResult(this.records.get(key));
  }

  /**
   * The things that stay on the node when the step is removed from its state. Undefined: not known, because the step did not end, or because
   * the node's values exclude the step in this run alone.
   */
  remnantsOf(key: string): readonly ManagedRemnant[] | undefined {
    const record = this.records.get(key);
    if (record?.outcome === undefined || /^(?:failed|interrupted)$/.test(record.outcome)) return undefined;
    const plan = record.plan ?? planAgain(this.records, this.facts, record.draft);
    if (plan) return plan.leaves ?? [];
    return record.outcome === "skipped" && !record.draft.isUntrusted ? [] : undefined;
  }

  #takeOutput(id: string, words: string, bytes: Uint8Array): void {
    const [, key = "", stream = "", chunk = ""] = /^([^.]+)\.([oe])\.(\d{1,9})$/.exec(id) ?? [];
    const record = this.records.get(key);
    if (!record || isFinal(record.outcome)) return;
    for (const made of this.#output.take(`${key}.${stream}`, Number(chunk), words.split(" ", 3), bytes)) {
      const event = this.#outputEvent(record, stream === "o" ? "out" : "err", made);
      if (event) this.events.reportNow(key, record.draft.id, event);
    }
  }

  #outputEvent(record: StepRecord, stream: "out" | "err", made: NewOutput): RunEventBody | undefined {
    if (stream === "err") record.stderrEnd = lastLines(record.stderrEnd + made.text, limits.stderr);
    return outputEvent(record, { node: this.#node, stream, made });
  }
}
