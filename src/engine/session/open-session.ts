import { randomBytes } from "node:crypto";
import type { ErrorCode } from "#errors/codes.ts";
import { KcoreError, type Problem } from "#errors/problem.ts";
import type { NodeOutcome } from "#engine/events/event.ts";
import type { Blob } from "#engine/step/blob.ts";
import { blobCommands } from "#engine/program/blob-commands.ts";
import { runnerCommand, segmentCommand, type RunVariables } from "#engine/program/bootstrap.ts";
import { compileStep, stepKey } from "#engine/program/compile-step.ts";
import type { Frame } from "#engine/program/frames.ts";
import { blobsOf, segmentText, type SegmentStep } from "#engine/program/segment.ts";
import type { LateScope, PlannedStep, Registered, RenderedStep, StepDraft } from "#engine/states/planned-step.ts";
import type { Host } from "#engine/transport/host.ts";
import { type Link, openLink } from "./link.ts";
import { shapeFacts } from "./node-facts.ts";
import type { NodeSession, SessionOptions, StageWork, WorkResult } from "./session.ts";
import { StepReport } from "./step-report.ts";

/** How a segment's wait ended. */
type Turn =
  | { readonly kind: "end"; readonly how: string }
  /** The runner is not there any more: a reboot, or somebody killed it. */
  | { readonly kind: "runner-lost" }
  /** Another run holds the node. */
  | { readonly kind: "locked"; readonly problem: Problem }
  | { readonly kind: "problem"; readonly problem: Problem; readonly outcome: NodeOutcome };

const beatEvery = 5_000;
const rebootTimeout = 600_000;
const retryDelays: readonly number[] = [0, 1_000, 3_000, 8_000, 20_000];
/** While a machine boots: again and again, until its time is over. */
const rebootDelays: readonly number[] = Array.from({ length: rebootTimeout / 2_000 }, () => 2_000);
const lockedDelay = 2_000;
/** Characters of a node's journal that are kept before its steps are known: that of some hundred thousand steps. */
const historyLimit = 64 << 20;

/** Opens a session to one node; nothing is connected before the first work. */
export function openSession(options: SessionOptions): NodeSession {
  return new Session(options);
}

class Session implements NodeSession {
  readonly #options: SessionOptions;
  readonly #run: RunVariables;
  readonly #report: StepReport;
  readonly #stopping = new AbortController();
  /** Registered results by register name, of all perform calls. */
  readonly #registered = new Map<string, Registered | undefined>();
  readonly #blobs = new Map<string, Blob>();
  /** Ends of steps that an earlier process of this run started: by key, before the step's draft is known. */
  readonly #history = new Map<string, Frame[]>();
  #host: Host | undefined;
  #link: Link | undefined;
  #beat: NodeJS.Timeout | undefined;
  #boot: string | undefined;
  #offset = 0;
  #segment = 0;
  /** A runner is known to live on the node; it wants segment #segment + 1. */
  #runnerAlive = false;
  /** The runner was sent over the present link. */
  #launched = false;
  #openSegment = 0;
  #facts: Readonly<Record<string, unknown>> | undefined;
  #turn: ((turn: Turn) => void) | undefined;
  #early: Turn | undefined;
  /** Characters of frames in #history. */
  #kept = 0;
  /** Bytes of the journal that earlier runners wrote. */
  #historyEnd = 0;
  /** Resolves when the follower has told the journal as it was when it came. */
  #told = Promise.withResolvers<void>();
  #bye: (() => void) | undefined;
  /** The runner was told to end with its present segment if that is in order. */
  #ending = false;
  /** The follower at the other end of the present link found no runner, and was sent none. */
  #vacant = false;
  #dead: Extract<Turn, { kind: "problem" }> | undefined;
  #reconnecting: Promise<unknown> | undefined;
  /** Connected again, and still hearing what happened meanwhile. */
  #catchingUp = false;
  /** The runner is being ended, and the connection with it; another one may follow. */
  #retiring = false;
  /** The running segment ends with a reboot: the connection will be lost, for longer than usual. */
  #rebooting = false;
  #toldLocked = false;
  /** The first flight was sent, and nothing was heard of it yet. */
  #flying = false;
  #unrenderable: Problem | undefined;
  /** The segment sent last, as a command. */
  #command = "";
  /** Blobs that the runner waits for. */
  #asked: readonly string[] = [];
  #finished = false;
  #stopped: "stop" | "abort" | undefined;
  /** Connections opened since the last one over which the node's shell answered. */
  #unanswered = 0;
  exchanges = 0;

  constructor(options: SessionOptions) {
    this.#options = options;
    const { node, runId, nonce, who, dryRun, grants } = options;
    this.#run = {
      nonce,
      runId,
      who,
      dryRun,
      grants,
      stateDir: node.stateDir,
      node: node.name,
      login: node.transport === "local" ? (process.getuid?.() === 0 ? "root" : "user") : node.user,
    };
    this.#report = new StepReport({ node: node.name, emit: options.emit, recorded: options.recorded });
  }

  host(): Host | undefined {
    return this.#host;
  }

  stop(): void {
    this.#stopped ??= "stop";
    this.#stopping.abort();
    void this.#link?.send("stop\n");
  }

  abort(): void {
    this.#stopped = "abort";
    this.#stopping.abort();
    void this.#link?.send("abort\n");
  }

  async facts(): Promise<Readonly<Record<string, unknown>>> {
    if (!this.#facts) {
      const turn = (await this.#connectIfResumed()) ?? (await this.#runSegment([], true));
      if (turn.kind === "problem")
        throw new KcoreError(turn.problem, { exitCode: turn.outcome === "unreachable" ? 3 : 1 });
    }
    return this.#facts ?? {};
  }

  async perform(work: readonly StageWork[], { isLast = false } = {}): Promise<WorkResult> {
    const queue = work.flatMap(({ stage, drafts }) =>
      drafts.map((draft) => ({ stage, draft, key: stepKey(draft.id) })),
    );
    for (const { key, draft, stage } of queue) this.#adopt(key, draft, stage);
    let trouble = await this.#connectIfResumed();
    // Nothing to send: only the connection is asked for (`kcore ping`).
    if (!trouble && !this.#link && queue.length === 0) trouble = await this.#firstConnect("");
    let failed: Problem | undefined;
    while (!trouble && queue.length > 0 && !this.#stopped) {
      const { steps, facts } = this.#take(queue, failed !== undefined);
      if (steps.length > 0 || facts) {
        const turn = await this.#runSegment(steps, facts, isLast && queue.length === 0);
        if (turn.kind === "problem") trouble = turn;
      }
      failed ??= this.#firstFailure(steps) ?? this.#unrenderable;
      if (failed) this.#dropUnanswered(queue, steps);
    }
    await this.#report.settled();
    const ran = (drafts: readonly StepDraft[]): boolean =>
      drafts.every(({ id }) => this.#report.records.get(stepKey(id))?.outcome !== undefined) &&
      !drafts.some(({ id }) => this.#report.records.get(stepKey(id))?.outcome === "failed");
    if (!trouble && !failed && !this.#stopped) trouble = this.#missingEnd(work);
    const problem = trouble?.kind === "problem" ? trouble.problem : failed;
    const outcome: NodeOutcome =
      trouble?.kind === "problem" ? trouble.outcome : failed ? "failed" : this.#stopped ? "interrupted" : "done";
    return {
      outcome,
      registered: this.#registered,
      finishedStages: new Set(work.filter(({ drafts }) => ran(drafts)).map(({ stage }) => stage)),
      ...(problem && { problem }),
    };
  }

  /** What was to be done and was not told to be done is not done, whatever the reason. */
  #missingEnd(work: readonly StageWork[]): Turn | undefined {
    const drafts = work.flatMap((one) => one.drafts);
    const missing = drafts.find(({ id }) => this.#report.records.get(stepKey(id))?.outcome === undefined);
    if (!missing) return undefined;
    const problem: Problem = {
      code: "RUN_ABANDONED",
      message: `“${missing.title}” was sent to ${this.#run.node}, but did not run`,
      at: missing.at,
      hint: `go on with: kcore runs resume ${this.#options.runId}`,
    };
    return { kind: "problem", outcome: "failed", problem };
  }

  async rest(): Promise<void> {
    await this.#reconnecting;
    if (this.#dead || this.#finished || !this.#link) return;
    await this.#retire();
  }

  async finish(outcome: NodeOutcome, problem?: Problem): Promise<void> {
    if (this.#finished) return;
    await this.#reconnecting;
    this.#finished = true;
    // A connection that broke just now must not leave the node locked until the lease ends.
    for (let attempt = 1; attempt <= 3 && this.#runnerAlive && !this.#dead; attempt++) {
      if (!this.#link && (await this.#connect(attempt, ""))) break;
      if (attempt > 1) await this.#readHistory();
      await this.#sayGoodbye(outcome);
    }
    // Its last word was lost with a connection: the follower that came after it clears up.
    if (this.#link && this.#vacant && this.#segment > 0 && !this.#dead) await this.#sayGoodbye(outcome);
    clearInterval(this.#beat);
    this.#link?.end();
    await this.#host?.close();
    await this.#report.settled();
    this.#options.emit({ type: "node.finished", node: this.#options.node.name, outcome, ...(problem && { problem }) });
  }

  // ---- segments ------------------------------------------------------------------------------------------------------

  #adopt(key: string, draft: StepDraft, stage: string): void {
    if (this.#report.records.has(key)) return;
    this.#report.add(key, draft, stage);
    for (const frame of this.#history.get(key) ?? []) this.#report.take(frame);
  }

  /** Takes from the queue what can be rendered now: up to the first step that rests on what is not known yet. */
  #take(
    queue: { stage: string; draft: StepDraft; key: string }[],
    afterFailure: boolean,
  ): { steps: SegmentStep[]; facts: boolean } {
    const steps: SegmentStep[] = [];
    const inSegment = new Set<string>();
    for (let next = queue[0]; next; next = queue[0]) {
      const { draft, key } = next;
      const before = this.#report.records.get(key)?.outcome;
      if (before !== undefined && before !== "failed" && before !== "interrupted") {
        if (draft.register !== undefined) this.#registered.set(draft.register, this.#report.registered(key));
        queue.shift();
        continue;
      }
      if (draft.needs.facts && !this.#facts) return { steps, facts: true };
      if (draft.needs.steps.some((name) => inSegment.has(name))) return { steps, facts: false };
      queue.shift();
      const plan = this.#render(draft, key);
      if (this.#unrenderable) break;
      if (!plan) continue;
      if (afterFailure && plan.onFailure.length === 0) continue;
      steps.push({
        plan,
        compiled: compileStep(plan, {
          owes: this.#watchersOf(draft),
          randomName: () => randomBytes(16).toString("hex"),
        }),
      });
      if (draft.register !== undefined) inSegment.add(draft.register);
      if (plan.step.ends === "boot") break;
    }
    return { steps, facts: false };
  }

  #render(draft: StepDraft, key: string): PlannedStep | undefined {
    const late: LateScope = {
      steps: new Map(
        draft.needs.steps.map((name) => [name, this.#registered.has(name) ? this.#registered.get(name) : nothing]),
      ),
      ...(this.#facts && { facts: this.#facts }),
    };
    const rendered = this.#tryToRender(draft, key, late);
    if (!rendered) return undefined;
    if (rendered.kind === "step") {
      const record = this.#report.records.get(key);
      if (record) record.plan = rendered.plan;
      return rendered.plan;
    }
    if (rendered.kind === "skipped") this.#report.finish(key, "skipped", { reason: rendered.reason });
    else this.#report.finish(key, "unknown", { reason: `after ${rendered.after}` });
    if (draft.register !== undefined) this.#registered.set(draft.register, this.#report.registered(key));
    return undefined;
  }

  /** What cannot be rendered now that its late values are known has failed, like a step that was tried. */
  #tryToRender(draft: StepDraft, key: string, late: LateScope): RenderedStep | undefined {
    try {
      return draft.render(late);
    } catch (error) {
      const record = this.#report.records.get(key);
      if (!(error instanceof KcoreError) || !record) throw error;
      const [problem] = error.problems;
      if (problem) record.problem = problem;
      this.#unrenderable = problem;
      this.#report.finish(key, "failed");
      return undefined;
    }
  }

  /** Keys of all steps, of this segment or a later one, that watch this one. */
  #watchersOf({ id }: StepDraft): string[] {
    return [...this.#report.records].filter(([, { draft }]) => draft.watches.includes(id)).map(([key]) => key);
  }

  #firstFailure(steps: readonly SegmentStep[]): Problem | undefined {
    for (const { compiled, plan } of steps) {
      const record = this.#report.records.get(compiled.key);
      if (record?.outcome === "failed")
        return (
          this.#report.problemOf(compiled.key) ?? {
            code: "STEP_FAILED",
            message: `“${plan.title}” failed`,
            at: plan.at,
          }
        );
    }
    return undefined;
  }

  /** After a failure only the steps that answer it go on. */
  #dropUnanswered(queue: { draft: StepDraft }[], steps: readonly SegmentStep[]): void {
    const failed = new Set(
      steps
        .filter(({ compiled }) => this.#report.records.get(compiled.key)?.outcome === "failed")
        .map(({ plan }) => plan.id),
    );
    const answering = queue.filter(({ draft }) => draft.answers.some((id) => failed.has(id)));
    queue.splice(0, queue.length, ...(answering as typeof queue));
  }

  async #runSegment(steps: readonly SegmentStep[], facts: boolean, isLast = false): Promise<Turn> {
    for (const [name, blob] of blobsOf(steps)) this.#blobs.set(name, blob);
    const last = steps.at(-1);
    this.#rebooting = last?.plan.step.ends === "boot";
    let left = steps;
    for (;;) {
      const turn = await this.#send(left, facts, isLast && !facts && !this.#rebooting);
      if (turn.kind === "locked") {
        if (!this.#options.waitForLock || this.#stopped) return this.#failed(turn.problem);
        await this.#waitForLock(turn.problem);
        continue;
      }
      if (this.#rebooting && last && this.#report.records.get(last.compiled.key)?.outcome === "changed")
        return turn.kind === "problem" ? turn : this.#awaitReboot();
      if (turn.kind !== "runner-lost") {
        this.#settleSegment(steps, facts);
        return turn;
      }
      left = left.filter(({ compiled }) => this.#report.records.get(compiled.key)?.outcome === undefined);
      for (const { compiled, plan } of left) {
        if (this.#report.records.get(compiled.key)?.startedAt === undefined) continue;
        const note = "it was interrupted; it is looked at again";
        this.#options.emit({ type: "step.note", node: this.#run.node, step: plan.id, text: note });
      }
    }
  }

  async #waitForLock({ message }: Problem): Promise<void> {
    if (!this.#toldLocked) this.#options.emit({ type: "node.waiting", node: this.#run.node, reason: message });
    this.#toldLocked = true;
    const link = this.#link;
    this.#link = undefined;
    link?.end();
    await this.#host?.close();
    await delay(lockedDelay);
  }

  #settleSegment(steps: readonly SegmentStep[], facts: boolean): void {
    for (const { plan, compiled } of steps)
      if (plan.register !== undefined && this.#report.records.get(compiled.key)?.outcome !== undefined)
        this.#registered.set(plan.register, this.#report.registered(compiled.key));
    if (facts && Object.keys(this.#report.facts).length > 0) {
      this.#facts = shapeFacts(this.#report.facts);
      this.#options.emit({ type: "node.facts", node: this.#run.node, facts: this.#facts });
    }
  }

  async #send(steps: readonly SegmentStep[], facts: boolean, isLast: boolean): Promise<Turn> {
    await this.#reconnecting;
    if (this.#dead) return this.#dead;
    // Whatever ended before this is sent, it is not this.
    this.#early = undefined;
    this.#segment += 1;
    // A runner that knows the end need not wait for our goodbye.
    this.#ending = isLast;
    const text = `${isLast ? "k_fin=done\n" : ""}${segmentText({ steps, facts, now: Math.round(Date.now() / 1000) })}`;
    this.#command = segmentCommand(this.#run, this.#segment, text);
    const flight = this.#runnerAlive ? this.#command : this.#startRunner(text);
    this.exchanges += 1;
    const bytes = Buffer.byteLength(flight);
    const event = {
      type: "node.segment",
      node: this.#run.node,
      exchange: this.exchanges,
      steps: steps.length,
      bytes,
    } as const;
    if (this.#link) {
      this.#options.emit(event);
      void this.#link.send(flight);
    } else {
      const trouble = await this.#firstConnect(flight);
      if (trouble) return trouble;
      this.#options.emit(event);
    }
    return this.#nextTurn();
  }

  #startRunner(text: string): string {
    this.#runnerAlive = this.#launched = true;
    this.#vacant = false;
    const changed = [...this.#report.records].filter(([, { outcome }]) => outcome === "changed").map(([key]) => key);
    return runnerCommand(this.#run, { segment: this.#segment, changed, text });
  }

  #nextTurn(): Promise<Turn> {
    const early = this.#early;
    this.#early = undefined;
    if (early) return Promise.resolve(early);
    return new Promise((resolve) => (this.#turn = resolve));
  }

  #endTurn(turn: Turn): void {
    if (turn.kind === "problem") this.#dead = turn;
    const waiting = this.#turn;
    this.#turn = undefined;
    if (waiting) waiting(turn);
    else this.#early = turn;
  }

  // ---- the connection ------------------------------------------------------------------------------------------------

  /** Connects, and sends in the same flight what there is to send. */
  async #firstConnect(flight: string): Promise<Turn | undefined> {
    const trouble = await this.#connect(1, flight);
    if (!trouble) return undefined;
    if (!this.#flying || !unreachable.has(trouble.code)) return this.#fail(trouble);
    // The connection broke under the flight: what arrived of it runs, and holds the node's lock. Go and see.
    await this.#reconnect("");
    this.#flying = false;
    return this.#dead;
  }

  /** A resumed run reads the node's journal of it first, to the end of a segment under way. */
  async #connectIfResumed(): Promise<Turn | undefined> {
    if (this.#dead || this.#link || this.#reconnecting || !this.#options.resumed) return this.#dead;
    const trouble = await this.#firstConnect("");
    if (trouble) return trouble;
    await this.#readHistory();
    if (this.#runnerAlive && this.#openSegment !== 0) {
      // The ends of segments before it were told as well.
      this.#early = undefined;
      // What it may wait for (blobs) is not known here yet; what it leaves is sent anew.
      void (this.#link as Link | undefined)?.send("stop\n");
      const turn = await this.#nextTurn();
      if (turn.kind === "problem") return turn;
      if (turn.kind === "runner-lost") this.#runnerAlive = false;
    }
    await (this.#reconnecting as Promise<unknown> | undefined);
    if (this.#runnerAlive) await this.#retire();
    return this.#dead;
  }

  /** Ends the runner and closes the connection. A runner that an earlier process left may have been stopped: it would do nothing more. */
  async #retire(): Promise<void> {
    this.#retiring = true;
    await this.#sayGoodbye("interrupted");
    this.#retiring = this.#runnerAlive = false;
    const link = this.#link;
    this.#link = undefined;
    clearInterval(this.#beat);
    if (link) this.#offset = link.offset();
    link?.end();
    await this.#host?.close();
    this.#host = undefined;
  }

  /** Asks the runner to end, and waits for its last word, for the link's end, or fifteen seconds. */
  async #sayGoodbye(outcome: NodeOutcome): Promise<void> {
    const link = this.#link;
    if (!link) return;
    const bye = new Promise<void>((resolve) => (this.#bye = resolve));
    // One that knew its end has said its last word by itself: it is on its way.
    if (!this.#ending || outcome !== "done" || this.#vacant) void link.send(`fin ${outcome}\n`);
    const patience = Promise.withResolvers<void>();
    const timer = setTimeout(patience.resolve, 15_000);
    await Promise.race([bye, link.closed, patience.promise]);
    // A timer left behind would keep the run's process from ending.
    clearTimeout(timer);
  }

  #failed(problem: Problem): Turn {
    this.#dead = { kind: "problem", outcome: "failed", problem };
    return this.#dead;
  }

  #fail(problem: Problem): Turn {
    const outcome: NodeOutcome = unreachable.has(problem.code)
      ? "unreachable"
      : this.#stopped
        ? "interrupted"
        : "failed";
    this.#dead = { kind: "problem", problem, outcome };
    return this.#dead;
  }

  /** One connection and its follower. Gives the problem if there is none. */
  async #connect(attempt: number, flight: string): Promise<Problem | undefined> {
    const { endpoint, connect, connectTimeout, emit, sudoPassword, connectSlot } = this.#options;
    const node = this.#run.node;
    emit({ type: "node.connecting", node, attempt });
    this.#told = Promise.withResolvers<void>();
    this.#launched = flight !== "";
    this.#vacant = false;
    const release = await connectSlot();
    try {
      this.#host = await this.#patiently(() =>
        connect(endpoint, {
          timeout: connectTimeout,
          // Once something runs there, its end has to be heard of, also after a stop.
          ...(this.#boot === undefined && { signal: this.#stopping.signal }),
        }),
      );
      emit({ type: "node.connected", node, fingerprint: this.#host.fingerprint });
      this.#unanswered += 1;
      this.#flying = flight !== "";
      const link = await openLink({
        host: this.#host,
        run: this.#run,
        offset: this.#offset,
        seen: this.#report.seen,
        flight,
        sudoPassword,
        onFrame: (frame) => this.#onFrame(frame),
      });
      this.#link = link;
      if (flight !== "") this.#flying = false;
      // Asked for while there was no connection.
      if (this.#stopped) void link.send(`${this.#stopped}\n`);
      clearInterval(this.#beat);
      this.#beat = setInterval(() => void link.send("beat\n"), beatEvery);
      this.#beat.unref();
      void link.closed.then((said) => this.#onClosed(link, said));
      return undefined;
    } catch (error) {
      await this.#host?.close();
      this.#host = undefined;
      if (error instanceof KcoreError) return error.problems[0] as Problem;
      throw error;
    } finally {
      release();
    }
  }

  /**
   * A busy sshd drops connections unheard (MaxStartups): tries again, later (F-22). When this machine has no file left to
   * open, other nodes' connections have to end first: that may take them a minute (F-30).
   */
  async #patiently(connect: () => Promise<Host>): Promise<Host> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await connect();
      } catch (error) {
        const reason = error instanceof KcoreError && "reason" in error ? error.reason : undefined;
        const tries = reason === "busy" ? 6 : reason === "files" ? 30 : 1;
        if (attempt >= tries || this.#stopping.signal.aborted) throw error;
        await delay(250 * Math.min(attempt, 6) * (1 + Math.random()));
      }
    }
  }

  #onClosed(link: Link, said: string): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    clearInterval(this.#beat);
    this.#offset = link.offset();
    if (this.#dead || this.#finished) return;
    // The runner said its last word, and the connection ends with it.
    if ((this.#retiring || this.#ending) && !this.#runnerAlive) return;
    const reconnecting = this.#reconnect(said)
      .catch((error: unknown) => this.#endTurn({ kind: "problem", outcome: "failed", problem: bugProblem(error) }))
      .finally(() => {
        // A connection that broke at once is followed by the next one already.
        if (this.#reconnecting === reconnecting) this.#reconnecting = undefined;
      });
    this.#reconnecting = reconnecting;
  }

  async #reconnect(said: string): Promise<void> {
    const { emit, runId } = this.#options;
    const node = this.#run.node;
    let problem: Problem = {
      code: "HOST_LOST",
      message: `the connection to ${node} was lost`,
      ...(said.trim() !== "" && { detail: said.trim().slice(-1000) }),
    };
    // A connection that broke before the hello says nothing about the shell.
    const broken = Promise.race([this.#host?.closed.then(() => true) ?? true, delay(100).then(() => false)]);
    if (this.#boot === undefined && !(await broken))
      return this.#endTurn({
        kind: "problem",
        outcome: "failed",
        problem: {
          ...problem,
          code: "NODE_SHELL_UNUSABLE",
          message: `${node} does not run a POSIX shell for us`,
          hint: "the login shell must allow `exec /bin/sh`; a forced command or a restricted shell prevents it",
        },
      });
    await this.#host?.close();
    const until = this.#rebooting ? Date.now() + rebootTimeout : Infinity;
    const pauses = this.#rebooting
      ? rebootDelays
      : (this.#options.retryDelays ?? retryDelays).slice(Math.max(0, this.#unanswered - 1));
    for (const [index, pause] of pauses.entries()) {
      const wait = pause * (0.5 + Math.random());
      emit({
        type: "node.disconnected",
        node,
        reason: problem.message,
        ...(wait > 0 && { retryIn: Math.round(wait) }),
      });
      await delay(wait);
      if (this.#finished) return;
      if (this.#rebooting && (this.#stopped || Date.now() > until)) return this.#endTurn(this.#notBack());
      this.#catchingUp = true;
      const trouble = await this.#connect(index + 2, "");
      if (!trouble) return this.#afterReconnect();
      problem = trouble;
    }
    this.#endTurn({
      kind: "problem",
      outcome: "unreachable",
      problem: { ...problem, hint: `the node finishes its running step; go on with: kcore runs resume ${runId}` },
    });
  }

  /** After a drop: the same runner goes on by itself; a new one has to be given what is left. */
  async #afterReconnect(): Promise<void> {
    await this.#readHistory();
    this.#catchingUp = false;
    // Broken again: the next connection does what this one should have.
    if (!this.#link) return;
    if (!this.#runnerAlive) return this.#endTurn({ kind: "runner-lost" });
    // What was on its way when the connection broke may not have arrived. Sent twice, it does no harm.
    if (this.#openSegment !== this.#segment && (this.#turn || this.#flying)) void this.#link?.send(this.#command);
    if (this.#asked.length > 0) void this.#sendBlobs(this.#asked);
  }

  /** Resolves when all was heard that stood in the node's journal when the connection was made. */
  async #readHistory(): Promise<void> {
    const link = this.#link;
    if (!link) return;
    await Promise.race([this.#told.promise, link.closed]);
  }

  async #awaitReboot(): Promise<Turn> {
    const boot = this.#boot;
    const node = this.#run.node;
    this.#options.emit({ type: "node.waiting", node, reason: "it reboots" });
    const until = Date.now() + rebootTimeout;
    while (Date.now() < until && !this.#stopped) {
      await Promise.race([this.#link?.closed, delay(1_000)]);
      await this.#reconnecting;
      if (this.#dead) return this.#dead;
      if (this.#boot === boot || !this.#link) continue;
      this.#early = undefined;
      this.#rebooting = this.#runnerAlive = false;
      return { kind: "end", how: "" };
    }
    return (this.#dead = this.#notBack());
  }

  #notBack(): Extract<Turn, { kind: "problem" }> {
    const { node } = this.#run;
    if (this.#stopped) {
      const problem: Problem = { code: "INTERRUPTED", message: `stopped while ${node} was rebooting` };
      return { kind: "problem", outcome: "interrupted", problem };
    }
    const message = `${node} did not come back within ${rebootTimeout / 1000} s`;
    return { kind: "problem", outcome: "failed", problem: { code: "REBOOT_TIMEOUT", message } };
  }

  // ---- frames --------------------------------------------------------------------------------------------------------

  #onFrame(frame: Frame): void {
    const [first = "", second = ""] = frame.rest.split(" ");
    // The runner says nothing between a question for blobs and their arrival.
    if (!aside.has(frame.type)) this.#asked = [];
    switch (frame.type) {
      case "hello":
        this.#takeHello(frame.rest.split(" "));
        break;
      case "runner":
        // On a first connection the runner was sent along already, before this answer came.
        this.#runnerAlive = first === "alive" || this.#launched;
        this.#vacant = !this.#runnerAlive;
        this.#historyEnd = Number(second) || 0;
        break;
      case "told":
        this.#told.resolve();
        break;
      case "segment":
        this.#openSegment = Number(first);
        this.#segment = Math.max(this.#segment, this.#openSegment);
        break;
      case "segment-end":
        this.#openSegment = 0;
        if (Number(first) === this.#segment) this.#endTurn({ kind: "end", how: second });
        break;
      case "need":
        this.#asked = frame.rest.split(" ");
        this.exchanges += 1;
        // Once is enough, and two at a time would garble each other.
        if (!this.#catchingUp) void this.#sendBlobs(this.#asked);
        break;
      case "lock":
        this.#takeLock(frame.rest);
        break;
      case "bye":
        this.#takeBye(first);
        break;
      case "gone":
        this.#runnerAlive = false;
        this.#openSegment = 0;
        this.#endTurn({ kind: "runner-lost" });
        this.#bye?.();
        break;
      case "fatal":
        this.#endTurn({ kind: "problem", outcome: "failed", problem: fatalProblem(this.#run.node, frame.rest) });
        this.#link?.end();
        break;
      default:
        if (
          frame.type !== "out" &&
          frame.type !== "quick" &&
          frame.type !== "fact" &&
          !this.#report.records.has(first)
        ) {
          this.#keep(first, frame);
        } else if (frame.type === "quick") {
          for (const key of frame.rest.split(" ").filter((name) => !this.#report.records.has(name)))
            this.#keep(key, { type: "end", rest: `${key} ok 0` });
          this.#report.take(frame);
        } else this.#report.take(frame);
    }
  }

  /** Keeps what an earlier process of this run heard of a step, until its draft is known. */
  #keep(key: string, frame: Frame): void {
    // Without an earlier process there is nothing to hear; and no node may fill our memory (requirement S-4).
    if (!this.#options.resumed || (this.#kept += frame.rest.length) > historyLimit) return;
    const frames = this.#history.get(key);
    if (frames) frames.push(frame);
    else this.#history.set(key, [frame]);
  }

  #takeHello([, , boot = "", , epoch = "0"]: readonly string[]): void {
    const node = this.#run.node;
    if (this.#boot !== undefined && this.#boot !== boot) this.#options.emit({ type: "node.rebooted", node });
    this.#boot = boot;
    this.#unanswered = 0;
    const skew = Math.round(Math.abs(Date.now() / 1000 - Number(epoch)));
    if (skew > 5)
      this.#options.emit({
        type: "warning",
        node,
        text: `the clock of ${node} differs from this machine's by ${skew} s`,
      });
  }

  #takeLock(rest: string): void {
    const [what = "", holder = "", since = ""] = rest.split(" ");
    const node = this.#run.node;
    if (what === "taken-over")
      this.#options.emit({ type: "warning", node, text: `took the lock over from a dead run (${runOf(holder)})` });
    if (what !== "held") return;
    // History of an earlier attempt that found the node busy.
    if ((this.#link?.offset() ?? 0) <= this.#historyEnd) return;
    const when = since === "" ? "" : ` since ${new Date(Number(since) * 1000).toISOString()}`;
    this.#runnerAlive = false;
    this.#endTurn({
      kind: "locked",
      problem: {
        code: "NODE_LOCKED",
        message: `${node} is in use by run ${runOf(holder)}${when}`,
        hint: `wait for it with --wait, or watch it: kcore runs attach ${runOf(holder)}; if its process died: kcore runs resume ${runOf(holder)}`,
      },
    });
  }

  #takeBye(outcome: string): void {
    if ((this.#link?.offset() ?? 0) <= this.#historyEnd) return;
    this.#runnerAlive = false;
    this.#bye?.();
    if (!this.#finished && !this.#retiring && !(this.#ending && outcome === "done"))
      this.#endTurn({
        kind: "problem",
        outcome: "failed",
        problem: {
          code: "RUN_ABANDONED",
          message: `the runner on ${this.#run.node} ended by itself (${outcome})`,
          hint: `go on with: kcore runs resume ${this.#options.runId}`,
        },
      });
  }

  async #sendBlobs(names: readonly string[]): Promise<void> {
    const link = this.#link;
    // A name that was never offered: the node gets nothing for it.
    const offered = new Map(
      names.flatMap((name): [string, Blob][] => {
        const blob = this.#blobs.get(name);
        return blob ? [[name, blob]] : [];
      }),
    );
    if (link) for await (const command of blobCommands(this.#run, offered)) await link.send(command);
  }
}

/** Frames that come between a question for blobs and the blobs' arrival. */
const aside: ReadonlySet<string> = new Set(["need", "out", "hello", "runner", "told", "detached"]);

const nothing: Registered = { changed: false, rc: 0, stdout: "", facts: {} };

const unreachable: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  "HOST_UNREACHABLE",
  "DNS_FAILED",
  "CHANNEL_REFUSED",
  "HOST_LOST",
]);

function runOf(holder: string): string {
  const [, , , run = "?", ...who] = holder.split(":");
  return `${run} of ${who.join(":") || "somebody"}`;
}

function fatalProblem(node: string, rest: string): Problem {
  const [code = "", ...words] = rest.split(" ");
  const text = words.join(" ");
  switch (code) {
    case "BASELINE_MISSING":
      return {
        code,
        message: `${node} lacks ${text}`,
        hint: "kcore needs a POSIX userland with setsid, sha256sum, stat -c, readlink and mv -T",
      };
    case "STATE_UNSAFE":
      return {
        code,
        message: `${node}: ${text}`,
        hint: "the state folder must belong to root, be no link, and not be writable for others",
      };
    case "STATE_UNUSABLE":
      return { code, message: `${node}: ${text}`, hint: "is the disk full, or the file system read-only?" };
    default:
      return {
        code: "NODE_SHELL_UNUSABLE",
        message: `${node}: the runner could not be started (${rest})`,
        hint: "does the login run a plain shell? A forced command or a restricted shell prevents it",
      };
  }
}

function bugProblem(error: unknown): Problem {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  const hint = "please report it with these lines and the command";
  return { code: "INTERNAL", message: "kcore met a bug of its own", detail: stack, hint };
}

function delay(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
