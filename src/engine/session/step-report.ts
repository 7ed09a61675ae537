import type { Problem } from "#errors/problem.ts";
import type { ErrorCode } from "#errors/codes.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Change, Emit, Outcome, RunEventBody } from "#engine/events/event.ts";
import { MASK } from "#engine/step/secret.ts";
import type { Facts } from "#engine/step/define.ts";
import { unescapeLine } from "#engine/program/escape.ts";
import type { Frame } from "#engine/program/frames.ts";
import { timeoutOf } from "#engine/program/segment.ts";
import type { PlannedStep, Registered, StepDraft } from "#engine/states/planned-step.ts";
import { unifiedDiff } from "./file-diff.ts";

/** What is known of one step of the node while its frames come in. */
export interface StepRecord {
  readonly draft: StepDraft;
  readonly stage: string;
  plan?: PlannedStep;
  outcome?: Outcome;
  have: Record<string, string>;
  now: Record<string, string>;
  shown?: string;
  stdout: string;
  rc: number;
  problem?: Problem;
  cause?: Problem;
  why?: string;
  startedAt?: number;
  /** Its apply began, and did not come to an end yet: what is in order after that was brought about by this run. */
  applying?: boolean;
  errors: string;
}

const outcomes: Readonly<Record<string, Outcome>> = {
  ok: "ok",
  changed: "changed",
  would: "would-change",
  skipped: "skipped",
  unknown: "unknown",
  failed: "failed",
  interrupted: "interrupted",
};

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
  /** Output received: bytes by `KEY.STREAM.CHUNK`. */
  readonly #received = new Map<string, number>();
  readonly #lost = new Map<string, number>();
  readonly #decoders = new Map<string, InstanceType<typeof TextDecoder>>();
  readonly facts: Record<string, string> = {};
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
  }) {
    this.#node = options.node;
    this.#emit = options.emit;
    this.#recorded = new Map(options.recorded);
    this.#now = options.now ?? Date.now;
  }

  add(key: string, draft: StepDraft, stage: string): StepRecord {
    const known = this.records.get(key);
    if (known) return known;
    const record: StepRecord = { draft, stage, have: {}, now: {}, stdout: "", rc: 0, errors: "" };
    this.records.set(key, record);
    return record;
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
    this.finish(key, outcome, reason === undefined ? {} : { reason });
  }

  outcomeOf(key: string): Outcome | undefined {
    return this.records.get(key)?.outcome;
  }

  wasStarted(key: string): boolean {
    return this.records.get(key)?.startedAt !== undefined;
  }

  /** The output known so far, for an attach: ` KEY.STREAM.CHUNK:BYTES …`. */
  get seen(): string {
    return [...this.#received].map(([id, bytes]) => `${id}:${bytes}`).join(" ");
  }

  /** Takes a frame that speaks of steps or facts. */
  take({ type, rest, bytes }: Frame): void {
    const [first = "", ...words] = rest.split(" ");
    const text = words.join(" ");
    if (type === "fact") return this.#takeFact(text);
    if (type === "quick") {
      for (const key of [first, ...words]) this.finish(key, "ok");
      return;
    }
    if (type === "out") return this.#takeOutput(first, words, bytes ?? new Uint8Array());
    const record = this.records.get(first);
    if (!record) return;
    const { draft, stage } = record;
    const names = { node: this.#node, step: draft.id };
    switch (type) {
      case "start":
        if (!record.applying) Object.assign(record, { have: {}, startedAt: this.#now() });
        Object.assign(record, { now: {}, stdout: "", rc: 0, errors: "" });
        for (const name of ["problem", "cause", "why"] as const) delete record[name];
        if (!record.applying) delete record.shown;
        this.#forgetOutput(first);
        this.#replayed.delete(draft.id);
        if (text !== "") record.why = this.#reasonOf(text);
        this.#tell(draft.id, { type: "step.started", ...names, stage, title: draft.title, module: draft.module });
        break;
      case "have":
        if (!record.applying) setFact(record.have, text);
        break;
      case "now":
        setFact(record.now, text);
        break;
      case "apply":
        if (text === "apply") record.applying = true;
        break;
      case "note":
        this.#tell(draft.id, { type: "step.note", ...names, text: cleanText(unescapeLine(text)) });
        break;
      case "retry":
        this.#tell(draft.id, { type: "step.note", ...names, text: `not yet; ${text} more attempts` });
        break;
      case "refused": {
        const [message = "", ...detail] = cleanText(unescapeLine(words.slice(1).join(" "))).split("\n");
        const more = detail.join("\n").trim();
        record.problem = { code: words[0] as ErrorCode, message, ...(more !== "" && { detail: more }) };
        break;
      }
      case "rc":
        record.rc = Number(text) || 0;
        break;
      case "show":
        if (!record.applying) record.shown = unescapeLine(text);
        break;
      case "stdout":
        // `sed` ends each line, the last too, with the escape of a line break.
        record.stdout = unescapeLine(text).replace(/\n$/, "").replace(/\n$/, "");
        break;
      case "milestone":
        this.#tell(draft.id, { type: "node.milestone", node: this.#node, milestone: cleanText(text) });
        break;
      case "end":
        this.finish(first, outcomes[words[0] ?? ""] ?? "failed", {
          rc: words[1] ?? "",
          reason: words.slice(2).join(" "),
        });
        break;
      default:
    }
  }

  /** Records how a step ended and tells it, unless an earlier process of this run told it already. */
  finish(key: string, found: Outcome, { rc = "0", reason = "" }: { rc?: string; reason?: string } = {}): void {
    const record = this.records.get(key);
    if (!record) return;
    const outcome = found === "ok" && record.applying ? "changed" : found;
    record.applying = outcome === "interrupted" && record.applying === true;
    record.outcome = outcome;
    if (outcome === "would-change") this.#lastChange = record.draft.title;
    const { draft, stage, plan } = record;
    const problem = outcome === "failed" ? this.#problemOf(record, rc) : undefined;
    if (problem) record.cause = problem;
    if (this.#wasRecorded(draft.id, outcome)) return;
    const why =
      reason ||
      (outcome === "unknown"
        ? `after ${this.#lastChange ?? "an earlier step"}`
        : outcome === "changed" || outcome === "would-change"
          ? record.why
          : undefined);
    const changes = outcome === "ok" || outcome === "skipped" ? [] : changesOf(record);
    const always = plan?.step.always === true && plan.creates === undefined && plan.unless === undefined;
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
    } as const;
    const { shown } = record;
    const target = plan?.step.shown;
    const drawn = shown !== undefined && target !== undefined && !hidden(plan);
    this.#send(
      event,
      drawn
        ? async () => {
            const diff = await unifiedDiff(shown, target);
            return { ...event, ...(diff !== undefined && { diff: cleanText(diff) }) };
          }
        : undefined,
    );
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
    if (!record || record.outcome === "would-change" || record.outcome === "unknown") return undefined;
    const facts = Object.keys(record.now).length > 0 ? record.now : record.have;
    return { changed: record.outcome === "changed", rc: record.rc, stdout: record.stdout, facts };
  }

  /** Another attempt's output begins from its first byte again. */
  #forgetOutput(key: string): void {
    for (const known of [this.#received, this.#lost, this.#decoders])
      for (const id of known.keys()) if (id.startsWith(`${key}.`)) known.delete(id);
  }

  /** Emits what a step says, unless it is history that the record holds. */
  #tell(step: string, event: RunEventBody): void {
    if (!this.#recorded.has(step) && !this.#replayed.has(step)) this.#send(event);
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

  #takeFact(text: string): void {
    setFact(this.facts, text);
  }

  #takeOutput(id: string, [offset = "0", , lost = "0"]: readonly string[], bytes: Uint8Array): void {
    const [key = "", stream] = id.split(".");
    const record = this.records.get(key);
    if (!record || (stream !== "o" && stream !== "e")) return;
    const known = this.#received.get(id) ?? 0;
    const fresh = bytes.subarray(Math.max(0, known - Number(offset)));
    this.#received.set(id, Math.max(known, Number(offset) + bytes.length));
    const streamId = `${key}.${stream}`;
    const skipped = Number(lost) - (this.#lost.get(streamId) ?? 0);
    this.#lost.set(streamId, Number(lost));
    if (fresh.length === 0) return;
    let decoder = this.#decoders.get(streamId);
    if (!decoder) this.#decoders.set(streamId, (decoder = new TextDecoder("utf-8")));
    const text = cleanText(decoder.decode(fresh, { stream: true }));
    if (stream === "e") record.errors = (record.errors + text).slice(-4096);
    if (hidden(record.plan)) return;
    this.#tell(record.draft.id, {
      type: "step.output",
      node: this.#node,
      step: record.draft.id,
      stream: stream === "o" ? "out" : "err",
      text,
      ...(skipped > 0 && { skipped }),
    });
  }

  #reasonOf(why: string): string {
    if (why === "owed") return "a reaction owed since an earlier run";
    const changed = this.records.get(why.replace("changed ", ""));
    return changed ? `because “${changed.draft.title}” changed` : "because something it watches changed";
  }

  #problemOf(record: StepRecord, rc: string): Problem {
    const { draft, plan, problem } = record;
    const at = { at: draft.at };
    if (problem) return { ...at, ...problem };
    const errors = hidden(plan) ? "" : record.errors.trimEnd();
    const detail = errors === "" ? {} : { detail: errors };
    const title = `“${draft.title}” (${draft.module})`;
    const differing = changesOf({ ...record, have: Object.keys(record.now).length > 0 ? record.now : record.have });
    const list = differing
      .map(({ name, have, want }) => `${name}: wanted ${want}, found ${have ?? "nothing"}`)
      .join("\n");
    if (rc === "timeout")
      return {
        code: "STEP_TIMEOUT",
        message: `${title} took longer than ${plan ? timeoutOf(plan) : 60} s`,
        ...at,
        ...detail,
        hint: "set timeout: on the step if it needs more",
      };
    if (rc === "15")
      return {
        code: "STEP_NOT_CONVERGED",
        message: `${title} was applied but is not in order`,
        ...at,
        detail: [list, errors].filter(Boolean).join("\n"),
      };
    if (rc === "16") return { code: "PROBE_FAILED", message: `${title} could not be looked at`, ...at, ...detail };
    if (rc === "17")
      return {
        code: "ASSERTION_FAILED",
        message: `${title} does not hold`,
        ...at,
        detail: [list, errors].filter(Boolean).join("\n"),
      };
    const status =
      record.rc === 0
        ? ""
        : record.rc > 128
          ? ` (killed by signal ${record.rc - 128})`
          : ` with exit status ${record.rc}`;
    return { code: "STEP_FAILED", message: `${title} failed${status}`, ...at, ...detail };
  }
}

function setFact(facts: Record<string, string>, text: string): void {
  const at = text.indexOf("=");
  // More names than any module or our list of facts has are a node that means ill (requirement S-4).
  if (at > 0 && (Object.hasOwn(facts, text.slice(0, at)) || Object.keys(facts).length < 1000))
    Object.defineProperty(facts, text.slice(0, at), {
      value: unescapeLine(text.slice(at + 1)),
      enumerable: true,
      writable: true,
      configurable: true,
    });
}

function changesOf({ plan, have }: { plan?: PlannedStep | undefined; have: Facts }): Change[] {
  if (!plan) return [];
  const mask = (value: string): string => (hidden(plan) ? MASK : cleanText(value));
  return Object.entries(plan.step.want)
    .filter(([name, want]) => have[name] !== want)
    .map(([name, want]) => ({ name, want: mask(want), ...(have[name] !== undefined && { have: mask(have[name]) }) }));
}

function hidden(plan: PlannedStep | undefined): boolean {
  return plan !== undefined && (plan.sensitive || plan.step.sensitive === true);
}
