import { KcoreError, type Problem } from "#errors/problem.ts";
import type { ErrorCode } from "#errors/codes.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Emit, Outcome, RunEventBody } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { lastLines } from "#engine/events/whole-lines.ts";
import { unescapeLine, type Frame } from "#engine/program/frames.ts";
import type { Leaving } from "#engine/states/leaves.ts";
import type { PlannedStep, Registered, StepDraft } from "#engine/states/planned-step.ts";
import { cut } from "./cut.ts";
import { unifiedDiff } from "./file-diff.ts";
import { OrderedEvents } from "./ordered-events.ts";
import { NodeBudget } from "./node-budget.ts";
import { shapeFacts } from "#engine/facts/shape.ts";
import { setFact } from "./step-facts.ts";
import { StepOutput, type NewOutput } from "./step-output.ts";
import { isFinal, newRecord, outcomes, type StepRecord } from "./step-record.ts";
import { changesOf, hidden, problemOf } from "./step-problem.ts";

/** Times that a step is begun at most in a session, those that the record holds aside: by reboots, dead runners, resumed runs. */
const mostStarts = 32;
/** Characters of a note, of a milestone or a reason, of a refusal, and of what a failed step printed on stderr that are told. */
const told = { note: 65_536, word: 1024, refusal: 16_384, errors: 4096 };
/** What an event costs of the node's budget beside its text, and a diff. */
const cost = { frame: 128, event: 512, diff: 65_536 };

/**
 * Turns the frames of one node's steps into events. Steps are known by their keys; frames of keys that nobody planned
 * are ignored: what a node says can never name anything new (requirement S-4).
 */
export class StepReport {
  readonly #node: string;
  readonly #emit: Emit;
  /** By step: ends that the record holds, and that the node's journal is still to tell again. */
  readonly #recorded: Map<string, readonly Outcome[]>;
  readonly #now: () => number;
  /** Steps whose last attempt the record holds: what follows its end, a milestone, stands there too. */
  readonly #replayed = new Set<string>();
  readonly records = new Map<string, StepRecord>();
  readonly #output: StepOutput;
  readonly #order = new OrderedEvents();
  readonly facts: Record<string, string> = {};
  /** Why the last connection failed that should confirm a change. */
  met = "";
  /** Grants that the node has used, or their fingerprints. */
  readonly wiping = new Set<string>();
  readonly budget: NodeBudget;
  /** The last step that would change in a dry run: what `unknown` is unknown after. */
  #lastChange: string | undefined;
  /** Events that wait for a diff before them. */
  #waiting = 0;
  #diffs: Promise<unknown> = Promise.resolve();

  constructor(options: {
    node: string;
    emit: Emit;
    recorded: ReadonlyMap<string, readonly Outcome[]>;
    now?: () => number;
    /** `false`: what is foreseen of steps waits for {@link open}. */
    isHeard?: boolean;
  }) {
    this.#node = options.node;
    this.#emit = options.emit;
    this.#recorded = new Map(options.recorded);
    this.#now = options.now ?? Date.now;
    this.#output = new StepOutput(this.#now);
    this.budget = new NodeBudget(options.node, () => this.records.size);
    if (options.isHeard === false) this.#order.close();
  }

  add(key: string, draft: StepDraft, stage: string): StepRecord {
    const known = this.records.get(key);
    if (known) return known;
    const record = newRecord(draft, stage);
    this.records.set(key, record);
    return record;
  }

  /** From now on these steps are told, in this order. */
  expect(keys: readonly string[]): void {
    this.#order.expect(keys.filter((key) => !isFinal(this.outcomeOf(key))));
  }

  /** The node was heard, or nothing is asked of it: what was foreseen of its steps is told from now on. */
  open(): void {
    this.#order.open();
  }

  /** Tells what still waits for steps before it, which will not be told any more. */
  release(): void {
    this.#order.release();
  }

  /** Says how the step looks that is being sent. */
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
    // It would answer what has failed: this is its turn.
    const isAnswer = record?.draft.answers.some((id) => this.outcomeOf(stepKey(id)) === "failed") ?? false;
    if (isAnswer) this.#order.skipTo(key);
    this.finish(key, outcome, { ...(reason !== undefined && { reason }), isForeseen: !isAnswer });
  }

  outcomeOf(key: string): Outcome | undefined {
    return this.records.get(key)?.outcome;
  }

  wasStarted(key: string): boolean {
    return this.records.get(key)?.startedAt !== undefined;
  }

  /** The output known so far, for an attach: ` KEY.STREAM.CHUNK:BYTES …`. */
  get seen(): string {
    return this.#output.seen;
  }

  /** Takes a frame that speaks of steps or facts. @throws KcoreError NODE_LIMIT_EXCEEDED */
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
    // What has its outcome keeps it: the node is not asked for it again.
    if (!record || (isFinal(record.outcome) && type !== "milestone")) return;
    this.budget.spend(cost.frame + text.length);
    this.#takeOfStep(first, record, type, text);
  }

  #takeOfStep(key: string, record: StepRecord, type: string, text: string): void {
    const { draft } = record;
    const names = { node: this.#node, step: draft.id };
    switch (type) {
      case "start":
        return this.#begin(key, record, text);
      case "have":
        if (!record.applying) record.kept += setFact(record.have, text, this.budget);
        break;
      case "now":
        record.kept += setFact(record.now, text, this.budget);
        break;
      case "apply":
        if (text === "apply") record.applying = true;
        break;
      case "note": {
        const note = cleanText(unescapeLine(cut(text, told.note)));
        this.budget.spend(note.length);
        this.#say(key, draft.id, { type: "step.note", ...names, text: note });
        break;
      }
      case "wiping":
        this.wiping.add(cut(text, told.word));
        break;
      case "retry":
        this.#say(key, draft.id, {
          type: "step.note",
          ...names,
          text: `not yet; ${cut(text, told.word)} more attempts`,
        });
        break;
      case "refused": {
        const [code = "", ...words] = cut(text, told.refusal).split(" ");
        const [message = "", ...detail] = cleanText(unescapeLine(words.join(" "))).split("\n");
        const more = detail.join("\n").trim();
        record.problem = { code: cut(code, 64) as ErrorCode, message, ...(more !== "" && { detail: more }) };
        break;
      }
      case "rc":
        record.rc = Number(text.replace(/ same$/, "")) || 0;
        if (text.endsWith(" same")) record.applying = false;
        break;
      case "show":
        if (!record.applying) record.shown = this.#keep(record, unescapeLine(text));
        break;
      case "stdout":
        // `sed` ends each line, the last too, with the escape of a line break.
        record.stdout = this.#keep(record, unescapeLine(text).replace(/\n$/, "").replace(/\n$/, ""));
        break;
      case "milestone": {
        this.budget.spend(cost.event);
        const milestone = cleanText(cut(text, told.word));
        this.#tell(key, draft.id, { type: "node.milestone", node: this.#node, milestone });
        break;
      }
      case "end": {
        const [word = "", rc = "", ...reason] = cut(text, told.word).split(" ");
        const outcome = outcomes.get(word) ?? "failed";
        record.isConditional = reason[0] === "unless";
        // One end for each start; without one ends what is passed over, or what its shell did not come to.
        if (record.isOpen || outcome !== record.outcome)
          this.finish(key, outcome, { rc, reason: this.#doubtOf(outcome, reason) });
        break;
      }
      default:
    }
  }

  #begin(key: string, record: StepRecord, why: string): void {
    const { draft, stage } = record;
    record.starts += 1;
    if (record.starts > mostStarts + (this.#recorded.get(draft.id)?.length ?? 0))
      throw this.budget.exceeded(`the start of “${draft.title}” ${mostStarts} times`);
    this.budget.spend(cost.event);
    this.#release(record);
    if (!record.applying) Object.assign(record, { have: {}, startedAt: this.#now() });
    Object.assign(record, { now: {}, stdout: "", rc: 0, errors: "", isOpen: true });
    for (const name of ["problem", "cause", "why"] as const) delete record[name];
    if (!record.applying) delete record.shown;
    record.plan ??= this.#planOf(record.draft);
    this.#output.forget(key);
    this.#replayed.delete(draft.id);
    if (why !== "") record.why = this.#reasonOf(why);
    const names = { node: this.#node, step: draft.id };
    // It runs because an earlier one failed: those between them will not be told.
    if (draft.answers.length > 0) this.#order.skipTo(key);
    else this.#order.begin(key);
    this.#tell(key, draft.id, { type: "step.started", ...names, stage, title: draft.title, module: draft.module });
  }

  /** What an earlier process of this run has sent, as it is planned with what is heard of the steps before it. */
  #planOf(draft: StepDraft): PlannedStep | undefined {
    const { needs } = draft;
    const steps = needs.steps.map((name) => [name, this.#registeredAs(name)] as const);
    try {
      const late = { steps: new Map(steps), ...(needs.facts && { facts: shapeFacts(this.facts) }) };
      const rendered = draft.render(late);
      return rendered.kind === "step" ? rendered.plan : undefined;
    } catch (error) {
      if (error instanceof KcoreError) return undefined;
      throw error;
    }
  }

  #registeredAs(name: string): Registered | undefined {
    const key = [...this.records].find(([, { draft }]) => draft.register === name)?.[0];
    return key === undefined ? undefined : this.registered(key);
  }

  #takeQuick(keys: string): void {
    for (const [key] of keys.matchAll(/\S+/g)) {
      const record = this.records.get(key);
      if (!record || isFinal(record.outcome)) continue;
      this.budget.spend(cost.event);
      this.finish(key, "ok");
    }
  }

  #keep(record: StepRecord, text: string): string {
    this.budget.keep(text.length);
    record.kept += text.length;
    return text;
  }

  /** Records how a step ended and tells it, unless an earlier process of this run told it already. */
  finish(
    key: string,
    found: Outcome,
    { rc = "0", reason = "", isForeseen = false }: { rc?: string; reason?: string; isForeseen?: boolean } = {},
  ): void {
    const record = this.records.get(key);
    if (!record) return;
    for (const { stream, ...made } of this.#output.drain(key)) {
      const event = this.#outputOf(record, stream, made);
      if (event) this.#tell(key, record.draft.id, event);
    }
    const outcome = found === "ok" && record.applying ? "changed" : found;
    record.applying = outcome === "interrupted" && record.applying === true;
    const wasCut = record.outcome !== undefined && !isFinal(record.outcome);
    const halts = !isForeseen && (wasCut || !isFinal(outcome)) ? !isFinal(outcome) : undefined;
    record.outcome = outcome;
    record.isOpen = false;
    if (isFinal(outcome)) this.#output.forget(key);
    if (outcome === "would-change") this.#lastChange = record.draft.title;
    const { draft, stage, plan } = record;
    const back = outcome === "failed" ? this.#takeBack(key) : [];
    const problem = outcome === "failed" ? this.#named(problemOf(record, rc), [...back, record]) : undefined;
    if (problem) record.cause = problem;
    if (this.#wasRecorded(draft.id, outcome)) {
      this.#order.end(key, halts);
      return this.#forget(record);
    }
    const why =
      reason ||
      (outcome === "unknown"
        ? this.#doubted(plan)
        : outcome === "changed" || outcome === "would-change"
          ? record.why
          : undefined);
    const changes = outcome === "ok" || outcome === "skipped" ? [] : changesOf(record);
    const always =
      plan?.step.always === true && plan.step.tells !== true && plan.creates === undefined && plan.unless === undefined;
    const event = {
      type: "step.finished",
      node: this.#node,
      stage,
      step: draft.id,
      title: draft.title,
      module: draft.module,
      outcome,
      position: draft.at,
      ...(changes.length > 0 && { changes }),
      ...(why !== undefined && why !== "" && { reason: why }),
      ...(problem && { problem }),
      ...(record.startedAt !== undefined && { duration: this.#now() - record.startedAt }),
      ...(always && { always }),
      ...(outcome === "failed" && !wasEnded(rc) && record.rc !== 0 && { exitStatus: record.rc }),
    } as const;
    this.budget.spend(
      cost.event + (problem?.detail?.length ?? 0) + changes.reduce((sum, one) => sum + (one.have?.length ?? 0), 0),
    );
    for (const { draft: one, stage: where } of back) {
      const { id: step, title, module, at: position } = one;
      const undone = { type: "step.finished", node: this.#node, stage: where, step, title, module, position } as const;
      const reason = `taken back: it was on trial with “${draft.title}”`;
      this.#order.tell(key, () => this.#send({ ...undone, outcome: "interrupted", reason }));
    }
    const { shown } = record;
    const target = plan?.step.shown;
    if (shown === undefined || target === undefined || hidden(plan))
      this.#order.tell(key, () => this.#send(event), { isForeseen });
    else {
      this.budget.spend(cost.diff);
      const complete = async (): Promise<RunEventBody> => {
        const diff = await unifiedDiff(shown, target);
        return { ...event, ...(diff !== undefined && { diff: cleanText(diff) }) };
      };
      this.#order.tell(key, () => this.#send(event, complete));
    }
    this.#order.end(key, halts);
    this.#forget(record);
  }

  /** After a failed step on trial, the node reverts the changes of the steps on trial right before it. */
  #takeBack(key: string): readonly StepRecord[] {
    if (this.records.get(key)?.plan?.risk === undefined) return [];
    const keys = [...this.records.keys()];
    const before = keys.slice(0, keys.indexOf(key)).map((one) => this.records.get(one) as StepRecord);
    const tried = before.slice(before.findLastIndex(({ plan }) => plan?.risk === undefined) + 1);
    const back = tried.filter(({ outcome }) => outcome === "changed");
    for (const one of back) one.outcome = "interrupted";
    return back;
  }

  /** The problem of a reverted trial, with its steps' titles and the reason against the new connection. */
  #named(problem: Problem, tried: readonly StepRecord[]): Problem {
    if (problem.code !== "CONNECTIVITY_REVERTED") return problem;
    const names = tried.map(({ draft }) => `“${draft.title}”`).join(", ");
    const met = this.met === "" ? "" : `; the last attempt: ${this.met}`;
    return { ...problem, message: `${problem.message.replace("the change", names)}${met}` };
  }

  /** Of a step that is over stays what others may use. */
  #forget(record: StepRecord): void {
    delete record.shown;
    if (!isFinal(record.outcome) || record.draft.register !== undefined) return;
    Object.assign(record, { have: {}, now: {}, stdout: "" });
    this.#release(record);
  }

  #release(record: StepRecord): void {
    this.budget.release(record.kept);
    record.kept = 0;
  }

  /** Emits in order: the library for diffs is loaded late, so what follows an event with a diff may have to wait for it. */
  #send(event: RunEventBody, complete?: () => Promise<RunEventBody>): void {
    if (!complete && this.#waiting === 0) return this.#emit(event);
    this.#waiting += 1;
    this.#diffs = this.#diffs.then(async () => {
      this.#emit(complete ? await complete() : event);
      this.#waiting -= 1;
    });
  }

  /** Resolves when every event was emitted. */
  async settled(): Promise<void> {
    await this.#diffs;
  }

  /** Why a step failed; undefined if it did not. */
  problemOf(key: string): Problem | undefined {
    return this.records.get(key)?.cause;
  }

  registered(key: string): Registered | undefined {
    const record = this.records.get(key);
    if (!record || record.outcome === "would-change" || record.outcome === "unknown" || record.isConditional)
      return undefined;
    const facts = Object.keys(record.now).length > 0 ? record.now : record.have;
    return { changed: record.outcome === "changed", rc: record.rc, stdout: record.stdout, facts };
  }

  /**
   * The things that a step leaves on the node when it leaves its state; undefined: they are not known, as of a step that the node's answers
   * leave out in this run alone, or of one that did not end.
   */
  leavesOf(key: string): readonly Leaving[] | undefined {
    const record = this.records.get(key);
    if (record?.outcome === undefined || /^(?:failed|interrupted)$/.test(record.outcome)) return undefined;
    const plan = record.plan ?? this.#planOf(record.draft);
    if (plan) return plan.leaves ?? [];
    return record.outcome === "skipped" && !record.draft.isTold ? [] : undefined;
  }

  /** Emits what happens to a step at its turn, unless it is history that the record holds. */
  #tell(key: string, step: string, event: RunEventBody): void {
    if (!this.#recorded.has(step) && !this.#replayed.has(step)) this.#order.tell(key, () => this.#send(event));
  }

  /** The same of what a step says while it is at work: somebody wants to see it now. */
  #say(key: string, step: string, event: RunEventBody): void {
    if (this.#order.isEarly(key)) this.#order.skipTo(key);
    this.#tell(key, step, event);
  }

  /**
   * Whether this end of a step is the next one that the record holds. The journal tells them in the same order; when it
   * tells another one, it is a new journal (a node set up anew), and everything in it is news.
   */
  #wasRecorded(step: string, outcome: Outcome): boolean {
    const [next, ...later] = this.#recorded.get(step) ?? [];
    if (next === outcome && later.length > 0) this.#recorded.set(step, later);
    else this.#recorded.delete(step);
    if (next === outcome) this.#replayed.add(step);
    return next === outcome;
  }

  #takeOutput(id: string, words: string, bytes: Uint8Array): void {
    const [, key = "", stream = "", chunk = ""] = /^([^.]+)\.([oe])\.(\d{1,9})$/.exec(id) ?? [];
    const record = this.records.get(key);
    if (!record || isFinal(record.outcome)) return;
    for (const made of this.#output.take(`${key}.${stream}`, Number(chunk), words.split(" ", 3), bytes)) {
      const event = this.#outputOf(record, stream === "o" ? "out" : "err", made);
      if (event) this.#say(key, record.draft.id, event);
    }
  }

  #outputOf(record: StepRecord, stream: "out" | "err", made: NewOutput): RunEventBody | undefined {
    if (stream === "err") record.errors = lastLines(record.errors + made.text, told.errors);
    if (hidden(record.plan)) return undefined;
    return {
      type: "step.output",
      node: this.#node,
      step: record.draft.id,
      stream,
      text: made.text,
      ...(record.plan?.exact && exactly(made)),
      ...(made.skipped > 0 && { skipped: made.skipped }),
    };
  }

  /** `after KEY` of an unknown step, and `unless KEY …` of one that is known on a condition, with the titles of the earlier steps. */
  #doubtOf(outcome: Outcome, [word, ...rest]: readonly string[]): string {
    const titles = rest.flatMap((key) => this.records.get(key)?.draft.title ?? []).join(" or ");
    if (titles !== "" && word === "after") return `after ${titles}`;
    if (titles !== "" && word === "unless")
      return `unless ${titles} ${outcome === "would-change" ? "brings" : "changes"} it`;
    return [word, ...rest].join(" ");
  }

  /** Why a dry run does not know of a step that its runner did not name a reason for. */
  #doubted(plan: PlannedStep | undefined): string {
    if (plan?.step.tells && this.#lastChange === undefined) return "only running it tells";
    return `after ${this.#lastChange ?? "an earlier step"}`;
  }

  #reasonOf(why: string): string {
    if (why === "owed") return "a reaction owed since an earlier run";
    const changed = this.records.get(why.replace("changed ", ""));
    return changed ? `because “${changed.draft.title}” changed` : "because something it watches changed";
  }
}

/** The bytes beside the text, unless they are just what the text is in UTF-8. */
export function exactly({ text, bytes }: NewOutput): { readonly bytes?: string } {
  return Buffer.from(text).equals(bytes) ? {} : { bytes: Buffer.from(bytes).toString("base64") };
}

/** The runner ended it: its exit status is that of the signal. */
function wasEnded(rc: string): boolean {
  return rc === "timeout" || rc.startsWith("stalled:");
}
