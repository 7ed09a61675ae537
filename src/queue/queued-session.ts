import { createHash } from "node:crypto";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { NodeOutcome, Outcome, Question, RunEventBody } from "#engine/events/event.ts";
import { fromJson } from "#engine/orchestrate/values-json.ts";
import type { SavedDevice, SaveOccasion, KeptTable, TableSave } from "#engine/partition-backups/saved-tables.ts";
import type { NodeSession, SessionOptions, StageWork, WorkResult } from "#engine/session/session.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Command, NodeCall, Report } from "./messages.ts";

/** The coordinator's end of a job: sends commands to the worker that has the node at the moment. */
export interface JobLine {
  /** The job's place in the queue is free again. */
  readonly end: () => void;
  readonly send: (command: Command) => void;
}

export interface QueuedSessionOptions {
  readonly session: SessionOptions;
  /** Puts a job for the node onto the queue. */
  readonly enqueue: (session: QueuedSession) => Pick<JobLine, "end">;
  /** The node's attempts have higher numbers. */
  readonly firstAttempt: number;
  readonly ask: (question: Omit<Question, "id">) => Promise<string>;
}

type Parting = { readonly do: "rest" } | Extract<Command, { do: "finish" }>;

/**
 * A node's session whose work a worker does: a job from the first call to `rest` or `finish`. If the worker is lost, the next one says
 * `hello` and gets the calls that ended well and the one that has not ended; the node's journal has the steps that are done.
 */
export class QueuedSession implements NodeSession {
  readonly exchanges = 0;
  readonly node: SessionOptions["node"];
  readonly #options: QueuedSessionOptions;
  readonly #recorded: Map<string, Outcome[]>;
  readonly #tables = new Map<number, TableSave | KeptTable>();
  #job: Pick<JobLine, "end"> | undefined;
  #line: JobLine | undefined;
  #attempt: number;
  #calls = 0;
  #wasOpened = false;
  /** The worker that has the node asked for its sudo password. */
  #hasAsked = false;
  #stopped: "stop" | "abort" | undefined;
  #done: NodeCall[] = [];
  #pending: { readonly call: NodeCall; readonly result: PromiseWithResolvers<WorkResult> } | undefined;
  #parting: { readonly how: Parting; readonly over: PromiseWithResolvers<void> } | undefined;

  constructor(options: QueuedSessionOptions) {
    this.#options = options;
    this.node = options.session.node;
    this.#attempt = options.firstAttempt;
    this.#recorded = new Map([...options.session.recorded].map(([step, outcomes]) => [step, [...outcomes]]));
  }

  /** Whether a worker has the node. */
  get isTaken(): boolean {
    return this.#line !== undefined;
  }

  async perform(
    work: readonly StageWork[],
    { isLast = false, outputs = () => [] }: { readonly isLast?: boolean; readonly outputs?: () => unknown } = {},
  ): Promise<WorkResult> {
    if (this.#stopped) return ended("not-started");
    const stages = work.map(({ stage: id, drafts }) => ({ id, steps: stepsHash(drafts) }));
    const call = { call: ++this.#calls, stages, isLast, outputs: outputs() };
    const result = Promise.withResolvers<WorkResult>();
    this.#pending = { call, result };
    this.#line?.send({ do: "perform", ...call });
    this.#job ??= this.#options.enqueue(this);
    return result.promise;
  }

  host(): undefined {
    return undefined;
  }

  stop(): void {
    this.#stop("stop");
  }

  abort(): void {
    this.#stop("abort");
  }

  rest(): Promise<void> {
    return this.#part({ do: "rest" });
  }

  async finish(outcome: NodeOutcome, problem?: Problem): Promise<void> {
    await this.#part({ do: "finish", outcome, ...omitUndefined({ problem }) });
    const { emit, node } = this.#options.session;
    emit({ type: "node.finished", node: node.name, outcome, ...omitUndefined({ problem }) });
  }

  /** A worker has taken the job, and waits for the order to speak to the node. Messages of earlier workers no longer come. */
  take(line: JobLine): void {
    // Nothing is left to do that a later worker could do: the node's lease frees a lock that a lost worker held.
    if (!this.#pending || this.#stopped) {
      line.send({ do: "drop" });
      this.#settle(this.#wasOpened ? "interrupted" : "not-started");
      return;
    }
    this.#line = line;
    this.#hasAsked = false;
    const { resumed, looks } = this.#options.session;
    line.send({
      do: "open",
      attempt: ++this.#attempt,
      recorded: [...this.#recorded],
      resumed: resumed || this.#wasOpened,
      done: this.#done,
      ...(looks && { looks: looks.all() }),
    });
    this.#wasOpened = true;
    line.send({ do: "perform", ...this.#pending.call });
  }

  /** The worker is lost, or its messages are damaged: the next one to take the job goes on. */
  lose(): void {
    this.#line = undefined;
    for (const table of this.#tables.values()) if ("drop" in table) void table.drop().catch(() => undefined);
    this.#tables.clear();
    if (this.#stopped || this.#parting) this.#settle("interrupted");
  }

  handle(report: Report): void {
    const { session } = this.#options;
    switch (report.tell) {
      case "events":
        for (const event of report.events) this.#emit(event);
        return;
      case "looks":
        return session.looks?.add(report.hashes);
      case "result":
        if (report.call === this.#pending?.call.call) this.#resolve(fromJson(report.result) as WorkResult);
        return;
      case "refused":
        this.#line = undefined;
        this.#endJob();
        return this.#resolve({ ...ended("failed"), problem: report.problem });
      case "request":
        return void this.#serve(report);
      case "ended":
        return this.#settle("interrupted");
    }
  }

  #stop(how: "stop" | "abort"): void {
    this.#stopped = how;
    if (this.#line) this.#line.send({ do: "stop", how });
    else this.#settle(this.#wasOpened ? "interrupted" : "not-started");
  }

  #emit(event: RunEventBody): void {
    if (event.type === "node.finished") return;
    if (event.type === "step.finished")
      this.#recorded.set(event.step, [...(this.#recorded.get(event.step) ?? []), event.outcome]);
    this.#options.session.emit(event);
  }

  #resolve(result: WorkResult): void {
    const { call, result: promise } = this.#pending ?? {};
    if (!call) return;
    if (result.outcome === "done") this.#done.push(call);
    this.#pending = undefined;
    promise?.resolve(result);
  }

  async #part(how: Parting): Promise<void> {
    if (!this.#job) return;
    const over = Promise.withResolvers<void>();
    this.#parting = { how, over };
    if (this.#line) this.#line.send(how);
    else this.#settle("interrupted");
    await over.promise;
  }

  /** The job is over: all that still waits for it ends. */
  #settle(outcome: "interrupted" | "not-started"): void {
    this.#line = undefined;
    this.#endJob();
    this.#resolve(ended(outcome));
    this.#parting?.over.resolve();
    this.#parting = undefined;
  }

  #endJob(): void {
    this.#job?.end();
    this.#job = undefined;
  }

  async #serve({ request, method, args }: Extract<Report, { tell: "request" }>): Promise<void> {
    const line = this.#line;
    try {
      const value = await this.#answerTo(method, request, args);
      line?.send({ do: "answer", request, ...omitUndefined({ value }) });
    } catch (error) {
      const problems =
        error instanceof KcoreError ? error.problems : [{ code: "INTERNAL", message: String(error) } as const];
      line?.send({ do: "answer", request, problems });
    }
  }

  /** The node's sudo password is asked for once a run, and again only if a worker found it wrong. */
  async #ask(question: Omit<Question, "id">): Promise<string> {
    if (question.kind !== "password") return this.#options.ask(question);
    const again = this.#hasAsked;
    this.#hasAsked = true;
    const password = await this.#options.session.sudoPassword(again);
    if (password !== undefined) return password;
    throw new KcoreError({ code: "QUESTION_UNANSWERED", message: "no operator gave the sudo password" });
  }

  /** A save of tables has the number of the request that opened it; a kept one, that of the request that kept it. */
  async #answerTo(method: Extract<Report, { tell: "request" }>["method"], request: number, args: unknown) {
    const given = args as { readonly table: number; readonly bytes: string } & Parameters<TableSave["keep"]>[0];
    const save = () => this.#tables.get(given.table) as TableSave;
    switch (method) {
      case "ask":
        return this.#ask(args as Omit<Question, "id">);
      case "table.open":
        this.#tables.set(request, await this.#options.session.tables.open());
        return undefined;
      case "table.add":
        return save().add(Buffer.from(given.bytes, "base64"));
      case "table.drop":
        return save().drop();
      case "table.keep": {
        const { device, occasion } = args as { readonly device: SavedDevice; readonly occasion: SaveOccasion };
        const kept = await save().keep(device, occasion);
        this.#tables.set(request, kept);
        const { id, isNew, bytes } = kept;
        return { id, isNew, bytes };
      }
      case "table.forget":
        return (this.#tables.get(given.table) as KeptTable).forget();
    }
  }
}

function ended(outcome: NodeOutcome): WorkResult {
  return { outcome, registered: new Map(), finishedStages: new Set() };
}

/** A hash over the ids of a stage's steps on a node. */
export function stepsHash(drafts: StageWork["drafts"]): string {
  const ids = drafts.map(({ id }) => id);
  return createHash("sha256").update(JSON.stringify(ids)).digest("base64url").slice(0, 16);
}
