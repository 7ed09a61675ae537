import { KcoreError, type Problem } from "#errors/problem.ts";
import type { Emit, NodeOutcome, RunEventBody } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import type { Frame } from "#engine/program/frames.ts";
import { believe, forgetUnused, type VerifiedGrants } from "./grants.ts";
import { consoleEnd } from "./console-log.ts";
import { SessionTransport } from "./session-transport.ts";
import { initialState, transition } from "./session-state.ts";
import type { SessionEffect, SessionEvent, QueueEvent, TransitionContext } from "./session-events.ts";
import { closesBlobRequest, eventOfFrame } from "./runner-frames.ts";
import { runVariables } from "./run-variables.ts";
import { SegmentWriter } from "./segment-writer.ts";
import { Timers } from "./timers.ts";
import { ReplayBuffer } from "./replay-buffer.ts";
import { workResult } from "./work-result.ts";
import type { Host } from "#engine/transport/host.ts";
import type { NodeSession, SessionOptions, StageWork, WorkResult } from "./session.ts";
import { StepReport } from "./step-report.ts";

type Returned = Extract<SessionEffect, { do: "return" }>;
const retryDelays: readonly number[] = [0, 1_000, 3_000, 8_000, 20_000];

/** Opens a session to one node; nothing is connected before the first work. */
export function openSession(options: SessionOptions): NodeSession {
  return new Session(options);
}

/** Carries out what the machines want done, and tells them what happened. */
class Session implements NodeSession {
  readonly #options: SessionOptions;
  readonly #report: StepReport;
  readonly #untold = new ReplayBuffer();
  readonly #writer: SegmentWriter;
  readonly #transport: SessionTransport;
  readonly #stopping = new AbortController();
  readonly #timers = new Timers((message) => this.#tell(message));
  readonly #messages: SessionEvent[] = [];
  #machines = initialState;
  #isTelling = false;
  #call: PromiseWithResolvers<Returned> | undefined;
  #parting: PromiseWithResolvers<void> | undefined;
  #isFinished = false;
  #granted: Promise<void> | undefined;
  /** Why the last connection failed that should confirm a change. */
  #away: string | undefined;
  #believed: VerifiedGrants | undefined;
  /** Whether the run gave up the node: its state is unknown. */
  #isDeaf = false;
  /** What a frame made us do, in characters of the node's budget. */
  #due = 0;

  constructor(options: SessionOptions) {
    const emit = (event: RunEventBody): void => this.#tellRun(event, options.emit);
    const session = (this.#options = { ...options, emit });
    const run = runVariables(options);
    this.#report = new StepReport({ ...session, node: run.node, isHeard: false });
    this.#writer = new SegmentWriter(run, this.#report);
    this.#transport = new SessionTransport({
      session,
      run,
      stopping: this.#stopping.signal,
      seen: () => this.#report.seen,
      tell: (event) => this.#tell({ to: "connection", event }),
      onFrame: (frame, offset) => this.#hear(frame, offset),
      onLimit: (error) => this.#overrun(error),
      onStall: (problem) => this.#giveUp(problem),
      settled: () => this.#report.settled(),
      onBug: (error) => this.#call?.reject(error),
    });
  }

  /** While a new connection is to confirm a change, each reason against that connection is emitted once, not per attempt. */
  #tellRun(event: RunEventBody, emit: Emit): void {
    if (this.#machines.runner.trial === undefined) this.#away = undefined;
    else if (event.type === "node.connecting" && this.#away !== undefined && event.attempt > 2) return;
    else if (event.type === "node.disconnected") {
      if (event.reason === this.#away) return;
      if (this.#away !== undefined) this.#report.met = event.reason;
      this.#away = event.reason;
    }
    emit(event);
  }

  get exchanges(): number {
    return this.#machines.runner.exchanges;
  }

  host(): Host | undefined {
    return this.#transport.host;
  }

  stop(): void {
    this.#stop("stop");
  }

  abort(): void {
    this.#stop("abort");
  }

  async perform(work: readonly StageWork[], { isLast = false } = {}): Promise<WorkResult> {
    const steps = work.flatMap(({ stage, drafts }) =>
      drafts.map((draft) => ({ stage, draft, key: stepKey(draft.id) })),
    );
    this.#report.expect(steps.map(({ key }) => key));
    for (const { key, draft, stage } of steps) {
      if (this.#report.records.has(key)) continue;
      this.#report.add(key, draft, stage);
      this.#takeUntold(key);
    }
    await this.#grant();
    const end = await this.#ask({ type: "perform", steps, isLast }).finally(() => this.#report.release());
    await this.#report.settled();
    const { registered, isStopped } = this.#machines.queue;
    const leaves = new Map(steps.map(({ key, draft }) => [draft.id, this.#report.leavesOf(key)]));
    return { ...workResult(work, { ...end, ...this.#context(), registered, isStopped }), leaves };
  }

  /** Before the first runner, which hands grants on to all steps: what they name is saved. A dry run wipes nothing. */
  #grant(): Promise<void> {
    const session = this.#options;
    if (session.dryRun || session.grants.length === 0) return Promise.resolve();
    const run = runVariables(session);
    const connect = async (): Promise<Host | undefined> => {
      const { nodeFailure } = await this.#ask({ type: "perform", steps: [], isLast: false });
      return nodeFailure ? undefined : this.#transport.host;
    };
    const asked = { session, run, store: session.tables, connect, stopping: this.#stopping.signal };
    return (this.#granted ??= believe(asked).then((believed) => {
      this.#believed = believed;
      this.#writer.grant(believed);
      // An earlier process of this run saved the disks whose wipes it began.
      this.#report.wiping.clear();
    }));
  }

  async rest(): Promise<void> {
    await this.#part({ type: "rest" });
  }

  async finish(outcome: NodeOutcome, problem?: Problem): Promise<void> {
    if (this.#isFinished) return;
    this.#isFinished = true;
    await this.#part({ type: "finish", outcome });
    await this.#report.settled();
    if (this.#believed && !this.#isDeaf && (outcome === "done" || outcome === "failed"))
      await forgetUnused(this.#options, this.#believed, this.#report.wiping);
    this.#options.emit({ type: "node.finished", node: this.#options.node.name, outcome, ...(problem && { problem }) });
  }

  #stop(how: "stop" | "abort"): void {
    this.#stopping.abort();
    this.#tell({ to: "connection", event: { type: "stop" } });
    this.#tell({ to: "runner", event: { type: "stop", how } });
    this.#tell({ to: "queue", event: { type: "stop" } });
  }

  #ask(event: QueueEvent): Promise<Returned> {
    const call = (this.#call = Promise.withResolvers());
    this.#tell({ to: "queue", event });
    return call.promise;
  }

  async #part(event: QueueEvent): Promise<void> {
    const parting = (this.#parting = Promise.withResolvers());
    this.#tell({ to: "queue", event });
    await parting.promise;
    await this.#transport.settled();
  }

  /** Tells the machines, one message after the other: what is done about one may bring the next. */
  #tell(message: SessionEvent): void {
    this.#messages.push(message);
    if (this.#isTelling) return;
    this.#isTelling = true;
    try {
      for (let told = this.#messages.shift(); told; told = this.#messages.shift()) {
        const { state, effects } = transition(this.#machines, told, this.#context());
        this.#machines = state;
        for (const effect of effects) this.#carryOut(effect);
      }
    } catch (error) {
      // A draft or a module threw: whoever gave it hears of it.
      if (!this.#call) throw error;
      this.#call.reject(error);
    } finally {
      this.#isTelling = false;
    }
  }

  #context(): TransitionContext {
    const { node, runId, resumed, waitForLock, retryDelays: delays = retryDelays } = this.#options;
    const constant = { node: node.name, runId, resumed, waitForLock, retryDelays: delays, heard: this.#report };
    const log = node.consoleLog;
    const console = log === undefined ? {} : { console: () => consoleEnd(log) };
    return { ...constant, ...console, now: Date.now(), chance: Math.random() };
  }

  #carryOut(effect: SessionEffect): void {
    this.#due += costOf(effect);
    switch (effect.do) {
      case "emit":
        if (effect.event.type === "node.rebooted") this.#writer.hasBooted = true;
        return this.#options.emit(effect.event);
      case "connect": {
        const flight = (effect.withFlight && this.#writer.written?.flight) || "";
        // Once something runs there, or a flight may have arrived, its end has to be heard of, also after a stop.
        const mayStop = this.#machines.connection.boot === undefined && effect.attempt === 1;
        return this.#transport.dial({ attempt: effect.attempt, flight, mayStop });
      }
      case "check-host":
      case "start-beat":
      case "stop-beat":
      case "close-channel":
      case "disconnect":
        return this.#transport.carryOut(effect.do);
      case "start-timer":
        return this.#timers.wait(effect.timer, effect.milliseconds);
      case "clear-timer":
        return this.#timers.forget(effect.timer);
      case "write-segment":
        return this.#writer.write(effect);
      case "report-segment":
        return this.#writer.written && this.#options.emit(this.#writer.written.event);
      case "transmit":
        return this.#transport.say(this.#writer.written?.[effect.what] ?? "");
      case "send-command":
        return this.#transport.say(effect.text);
      case "send-blobs":
        return this.#transport.sendBlobs(effect.names, this.#writer.blobs);
      case "end-step":
        return this.#report.endWithoutNode(effect.key, effect);
      case "return":
        if (!effect.nodeFailure) this.#report.open();
        return this.#call?.resolve(effect);
      case "rested":
      case "finished":
        return this.#parting?.resolve();
    }
  }

  /** @throws KcoreError NODE_LIMIT_EXCEEDED */
  #hear(frame: Frame, offset: number): void {
    this.#due = 0;
    this.#take(frame, offset);
    this.#report.budget.spend(this.#due);
  }

  #take(frame: Frame, offset: number): void {
    this.#report.open();
    const message = eventOfFrame(frame, offset);
    if (message) return this.#tell(message);
    if (closesBlobRequest(frame.type) && this.#machines.runner.asked.length > 0) {
      this.#transport.arrived();
      this.#tell({ to: "runner", event: { type: "blob-request-closed" } });
    }
    if (this.#options.resumed) this.#untold.hear(frame, (key) => this.#report.records.has(key));
    this.#report.take(frame);
  }

  /** What an earlier process of this run was told of a step that was unknown until now. */
  #takeUntold(key: string): void {
    try {
      for (const frame of this.#untold.of(key)) this.#report.take(frame);
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      this.#overrun(error);
    }
  }

  /** The node means ill, or is broken: it has failed, and nobody listens to it any more. */
  #overrun({ problems }: KcoreError): void {
    this.#giveUp(problems[0] as Problem);
  }

  #giveUp(problem: Problem): void {
    this.#isDeaf = true;
    this.#tell({ to: "queue", event: { type: "failed", problem, outcome: "failed" } });
    this.#transport.carryOut("close-channel");
  }
}

/** Characters of its budget that a node pays for what it makes us do. */
function costOf(effect: SessionEffect): number {
  switch (effect.do) {
    case "write-segment":
      // A runner that died, or that was said to have: all of it goes again.
      return effect.launch ? 128 << 10 : 4096;
    case "send-blobs":
      return 16 << 10;
    case "emit":
    case "report-segment":
      return 1024;
    default:
      return 0;
  }
}
