import { KcoreError, type Problem } from "#errors/problem.ts";
import type { NodeOutcome, RunEventBody } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import type { Frame } from "#engine/program/frames.ts";
import { dropUnusedSaves, saveGrantedTables, type SavedGrants } from "./save-granted-tables.ts";
import { ConnectReasons } from "./connect-reasons.ts";
import { consoleEnd } from "./console-log.ts";
import { costOf } from "./node-budget.ts";
import { NodeLooks } from "./node-looks.ts";
import { ReplayBuffer } from "./replay-buffer.ts";
import { closesBlobRequest, eventOfFrame } from "./runner-frames.ts";
import { SegmentWriter } from "./segment-writer.ts";
import {
  toConnection,
  toQueue,
  toRunner,
  type QueueEvent,
  type SessionEffect,
  type SessionEvent,
  type TransitionContext,
} from "./session-events.ts";
import { initialState, transition } from "./session-state.ts";
import { SessionTransport } from "./session-transport.ts";
import { SessionTimers } from "./session-timers.ts";
import { workResult } from "./work-result.ts";
import type { Host } from "#engine/transport/host.ts";
import { runVariables, type NodeSession, type SessionOptions, type StageWork, type WorkResult } from "./session.ts";
import { StepReport } from "./step-report.ts";

type Returned = Extract<SessionEffect, { do: "return" }>;
const retryDelays: readonly number[] = [0, 1_000, 3_000, 8_000, 20_000];

/** Opens a session to one node; nothing is connected before the first work. */
export function openSession(options: SessionOptions): NodeSession {
  return new Session(options);
}

/** Sends events to the state machines, and carries their effects out. */
class Session implements NodeSession {
  readonly #options: SessionOptions;
  readonly #report: StepReport;
  readonly #replay = new ReplayBuffer();
  readonly #writer: SegmentWriter;
  readonly #transport: SessionTransport;
  readonly #looks: NodeLooks;
  readonly #stopping = new AbortController();
  readonly #timers = new SessionTimers((event) => this.#send(event));
  readonly #events: SessionEvent[] = [];
  #state = initialState;
  #isSending = false;
  #call: PromiseWithResolvers<Returned> | undefined;
  #parting: PromiseWithResolvers<void> | undefined;
  #isFinished = false;
  #granted: Promise<void> | undefined;
  readonly #reasons = new ConnectReasons((reason) => (this.#report.connectProblem = reason));
  #savedGrants: SavedGrants | undefined;
  /** The run gave the node up, so the node's state is unknown. */
  #isGivenUp = false;
  /** Cost of the effects of the present frame, in characters of the node's budget. */
  #cost = 0;

  constructor(options: SessionOptions) {
    const emit = (event: RunEventBody): void => {
      if (this.#reasons.isNew(event, this.#state.runner.trial !== undefined)) options.emit(event);
    };
    const session = (this.#options = { ...options, emit });
    const run = runVariables(options);
    this.#report = new StepReport({ ...session, node: run.node, isClosed: true });
    this.#writer = new SegmentWriter(run, this.#report);
    this.#transport = new SessionTransport({
      session,
      run,
      stopping: this.#stopping.signal,
      seen: () => this.#report.seen,
      onEvent: (event) => this.#send(toConnection(event)),
      onFrame: (frame, offset) => this.#takeFrame(frame, offset),
      onLimit: (error) => this.#giveUp(error.problems[0] as Problem),
      onStall: (problem) => this.#giveUp(problem),
      settled: () => this.#report.events.emitted,
      onBug: (error) => this.#call?.reject(error),
    });
    this.#looks = new NodeLooks(session, run, this.#transport);
  }

  get exchanges(): number {
    return this.#looks.count + this.#state.runner.exchanges;
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
      this.#replayFrames(key);
    }
    const inOrder = await this.#looks.look(steps, this.#state, this.#context());
    if (inOrder) {
      this.#report.events.open();
      inOrder.report(this.#report);
      this.#report.events.release();
      for (const event of inOrder.events) this.#send(event);
      return this.#result(work, { nodeFailure: undefined, failed: undefined });
    }
    await this.#grant();
    const end = await this.#ask({ type: "perform", steps, isLast }).finally(() => this.#report.events.release());
    const result = await this.#result(work, end);
    if (result.outcome === "done") this.#looks.remember(steps, this.#report);
    return result;
  }

  async #result(work: readonly StageWork[], end: Pick<Returned, "nodeFailure" | "failed">): Promise<WorkResult> {
    await this.#report.events.emitted;
    const { registered, isStopped } = this.#state.queue;
    const ids = work.flatMap(({ drafts }) => drafts.map(({ id }) => id));
    const leaves = new Map(ids.map((id) => [id, this.#report.remnantsOf(stepKey(id))]));
    return { ...workResult(work, { ...end, ...this.#context(), registered, isStopped }), leaves };
  }

  /** Saves the granted disks before the first runner, which brings the grants to all steps. A dry run wipes nothing. */
  #grant(): Promise<void> {
    const session = this.#options;
    if (session.dryRun || session.grants.length === 0) return Promise.resolve();
    const run = runVariables(session);
    const connect = async (): Promise<Host | undefined> => {
      const { nodeFailure } = await this.#ask({ type: "perform", steps: [], isLast: false });
      return nodeFailure ? undefined : this.#transport.host;
    };
    const options = { session, run, store: session.tables, connect, stopping: this.#stopping.signal };
    return (this.#granted ??= saveGrantedTables(options).then((saved) => {
      this.#savedGrants = saved;
      this.#writer.grant(saved);
      // A wipe in the journal of an earlier process of this run belongs to a save of that process.
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
    await this.#report.events.emitted;
    // The other process of this run may need the saved tables.
    const isOurs = !this.#isGivenUp && problem?.code !== "RUN_SUPERSEDED";
    if (this.#savedGrants && isOurs && (outcome === "done" || outcome === "failed"))
      await dropUnusedSaves(this.#options, this.#savedGrants, this.#report.wiping);
    this.#options.emit({ type: "node.finished", node: this.#options.node.name, outcome, ...(problem && { problem }) });
  }

  #stop(how: "stop" | "abort"): void {
    this.#stopping.abort();
    this.#send(toConnection({ type: "stop" }));
    this.#send(toRunner({ type: "stop", how }));
    this.#send(toQueue({ type: "stop" }));
  }

  #ask(event: QueueEvent): Promise<Returned> {
    const call = (this.#call = Promise.withResolvers());
    this.#send(toQueue(event));
    return call.promise;
  }

  async #part(event: QueueEvent): Promise<void> {
    const parting = (this.#parting = Promise.withResolvers());
    this.#send(toQueue(event));
    await parting.promise;
    await this.#transport.settled();
  }

  /** Sends events one after the other: an effect of one event can cause the next. */
  #send(first: SessionEvent): void {
    this.#events.push(first);
    if (this.#isSending) return;
    this.#isSending = true;
    try {
      for (let event = this.#events.shift(); event; event = this.#events.shift()) {
        const { state, effects } = transition(this.#state, event, this.#context());
        this.#state = state;
        for (const effect of effects) this.#carryOut(effect);
      }
    } catch (error) {
      // An error of a draft or a module rejects the call that brought the draft.
      if (!this.#call) throw error;
      this.#call.reject(error);
    } finally {
      this.#isSending = false;
    }
  }

  #context(): TransitionContext {
    const { node, runId, resumed, waitForLock, retryDelays: delays = retryDelays } = this.#options;
    const constant = { node: node.name, runId, resumed, waitForLock, retryDelays: delays, results: this.#report };
    const log = node.consoleLog;
    const console = log === undefined ? {} : { console: () => consoleEnd(log) };
    return { ...constant, ...console, now: Date.now(), chance: Math.random() };
  }

  #carryOut(effect: SessionEffect): void {
    this.#cost += costOf(effect);
    switch (effect.do) {
      case "emit":
        if (effect.event.type === "node.rebooted") this.#writer.hasBooted = true;
        return this.#options.emit(effect.event);
      case "connect": {
        const flight = (effect.withFlight && this.#writer.written?.flight) || "";
        // If a runner perhaps works there already, its end must be read, also after a stop.
        const mayStop = this.#state.connection.boot === undefined && effect.attempt === 1;
        return this.#transport.connect({ attempt: effect.attempt, flight, mayStop });
      }
      case "check-host":
      case "start-beat":
      case "stop-beat":
      case "close-channel":
      case "disconnect":
        return this.#transport.carryOut(effect.do);
      case "start-timer":
        return this.#timers.start(effect.timer, effect.milliseconds);
      case "clear-timer":
        return this.#timers.clear(effect.timer);
      case "write-segment":
        this.#looks.note(effect.batch);
        return this.#writer.write({ ...effect, exchange: this.#looks.count + effect.exchange });
      case "report-segment":
        return this.#writer.written && this.#options.emit(this.#writer.written.event);
      case "transmit":
        return this.#transport.send(this.#writer.written?.[effect.what] ?? "");
      case "send-command":
        return this.#transport.send(effect.text);
      case "send-blobs":
        return this.#transport.sendBlobs(effect.names, this.#writer.blobs);
      case "end-step":
        return this.#report.endWithoutNode(effect.key, effect);
      case "return":
        if (!effect.nodeFailure) this.#report.events.open();
        return this.#call?.resolve(effect);
      case "rested":
      case "finished":
        return this.#parting?.resolve();
    }
  }

  /** @throws KcoreError NODE_LIMIT_EXCEEDED */
  #takeFrame(frame: Frame, offset: number): void {
    this.#cost = 0;
    this.#handleFrame(frame, offset);
    this.#report.budget.spend(this.#cost);
  }

  #handleFrame(frame: Frame, offset: number): void {
    this.#report.events.open();
    const event = eventOfFrame(frame, offset);
    if (event) return this.#send(event);
    if (closesBlobRequest(frame.type) && this.#state.runner.asked.length > 0) {
      this.#transport.arrived();
      this.#send(toRunner({ type: "blob-request-closed" }));
    }
    if (this.#options.resumed) this.#replay.add(frame, (key) => this.#report.records.has(key));
    this.#report.take(frame);
  }

  /** Takes the frames of a step that came before its draft, from the journal of an earlier process of this run. */
  #replayFrames(key: string): void {
    try {
      for (const frame of this.#replay.framesOf(key)) this.#report.take(frame);
    } catch (error) {
      if (!(error instanceof KcoreError)) throw error;
      this.#giveUp(error.problems[0] as Problem);
    }
  }

  /** Fails a hostile, broken or stalled node, from which nothing more is read. */
  #giveUp(problem: Problem): void {
    this.#isGivenUp = true;
    this.#send(toQueue({ type: "failed", problem, outcome: "failed" }));
    this.#transport.carryOut("close-channel");
  }
}
