import type { Outcome, RunEventBody } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { initialState, transition } from "#engine/session/session-state.ts";
import type { SessionEffect, SessionEvent, QueueEvent, Timer } from "#engine/session/session-events.ts";
import { eventOfFrame } from "#engine/session/runner-frames.ts";
import { StepReport } from "#engine/session/step-report.ts";
import { timerEvents } from "#engine/session/session-timers.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { ModelCommand, ModelFollower, ModelNode } from "./model-node.ts";

interface ModelLink {
  readonly follower: ModelFollower;
  readonly sent: ModelCommand[];
  /** The offsets of the requests for blobs that were answered over this connection. */
  readonly answered: Set<number>;
}

interface WorldOptions {
  readonly node: ModelNode;
  readonly drafts: readonly UnresolvedStep[];
  readonly retryDelays: readonly number[];
  readonly waitForLock: boolean;
  readonly recorded?: ReadonlyMap<string, readonly Outcome[]>;
}

/**
 * The state machines of a session with a model node at the other end, and their invariants: a broken invariant throws. Each method makes one
 * event happen; no event happens by itself.
 */
export class SessionWorld {
  readonly node: ModelNode;
  readonly events: RunEventBody[] = [];
  readonly timers = new Map<Timer, number>();
  readonly ended: SessionEffect[] = [];
  readonly #options: WorldOptions;
  readonly #report: StepReport;
  state = initialState;
  link: ModelLink | undefined;
  connecting: { readonly flight: ModelCommand[]; isReached: boolean } | undefined;
  isCheckingHost = false;
  /** Whether a runner did not answer a goodbye in time. */
  wasUnanswered = false;
  /** Whether no fault happens any more. */
  isUndisturbed = false;
  #now = 0;
  #offset = 0;
  #isBeating = false;
  #written: { readonly launch: boolean; readonly segment: ModelCommand & { do: "segment" } } | undefined;
  /** The segments sent, by runner and number, with the number of drops before. */
  readonly #sent = new Map<string, number>();
  readonly #begunSegments = new Set<number>();
  readonly #writtenKeys = new Set<string>();
  #performing: readonly UnresolvedStep[] = [];
  drops = 0;
  #lastNeed = 0;
  #isStopped = false;
  #wasHostGone = false;
  /** Whether the running segment ends with a reboot. */
  #isReboot = false;
  #isQuestionOpen = false;
  /** Whether a connection broke with commands in flight: the boot in which they arrived is unknown. */
  #hasFlightBroken = false;
  /** Connections that were tried since the node's last hello. */
  tries = 0;
  /** Whether the last connection carried commands, or could have. */
  #hasBegun = false;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.node = options.node;
    const emit = (event: RunEventBody): void => void this.events.push(event);
    this.#report = new StepReport({ node: "n1", emit, recorded: options.recorded ?? new Map(), now: () => 0 });
    for (const draft of options.drafts) this.#report.add(stepKey(draft.id), draft, "s");
  }

  ask(event: QueueEvent): void {
    this.#tell({ to: "queue", event });
  }

  /** The outcomes of steps so far, as the run's record keeps them. */
  recorded(): ReadonlyMap<string, readonly Outcome[]> {
    const recorded = new Map(this.#options.recorded);
    for (const event of this.events)
      if (event.type === "step.finished")
        recorded.set(event.step, [...(recorded.get(event.step) ?? []), event.outcome]);
    return recorded;
  }

  perform(drafts: readonly UnresolvedStep[], isLast: boolean): void {
    this.#performing = drafts;
    this.ask({ type: "perform", steps: drafts.map((draft) => ({ draft, key: stepKey(draft.id) })), isLast });
  }

  stop(how: "stop" | "abort"): void {
    this.#tell(
      { to: "connection", event: { type: "stop" } },
      { to: "runner", event: { type: "stop", how } },
      { to: "queue", event: { type: "stop" } },
    );
  }

  /** The connection under way makes one step: it reaches the host, or opens. */
  answerConnect(): void {
    const { connecting } = this;
    if (!connecting) return;
    this.#hasBegun ||= connecting.isReached || connecting.flight.length > 0;
    if (!connecting.isReached) {
      connecting.isReached = true;
      return this.#tell({ to: "connection", event: { type: "reached" } });
    }
    this.connecting = undefined;
    this.link = { follower: this.node.attach(this.#offset), sent: [...connecting.flight], answered: new Set() };
    this.#tell({ to: "connection", event: { type: "opened" } });
  }

  /** The connection fails. Of the commands in flight, the first `arrives` arrive. */
  refuseConnect(arrives: number): void {
    const { connecting } = this;
    if (!connecting) return;
    this.connecting = undefined;
    this.#hasFlightBroken ||= connecting.isReached;
    if (connecting.isReached) this.drops += 1;
    if (connecting.isReached && arrives > 0) {
      this.node.attach(this.#offset);
      for (const command of connecting.flight.slice(0, arrives)) this.node.take(command);
      this.node.follower = undefined;
    }
    this.#tell({
      to: "connection",
      event: { type: "refused", problem: { code: "HOST_UNREACHABLE", message: "n1 does not answer" } },
    });
  }

  deliverCommand(): boolean {
    const command = this.link?.sent.shift();
    if (command) this.node.take(command);
    return command !== undefined;
  }

  deliverFrame(): boolean {
    const { link } = this;
    const next = link?.follower.next();
    if (!next) return false;
    const [type = "", ...words] = next.frame.split(" ");
    const frame = { type, rest: words.join(" ") };
    this.#offset = next.offset;
    if (type === "hello") this.tries = 0;
    if (type === "segment") this.#begunSegments.add(Number(words[0]));
    if (type === "need") this.#lastNeed = next.offset;
    if (!["runner", "hello", "told"].includes(type)) this.#isQuestionOpen = type === "need";
    const message = eventOfFrame(frame, next.offset);
    this.#tell(message ?? { to: "runner", event: { type: "blob-request-closed" } });
    if (!message) this.#report.take(frame);
    return true;
  }

  drop(): void {
    if (!this.link) return;
    this.drops += 1;
    this.#hasFlightBroken ||= this.tries > 0;
    this.link = this.node.follower = undefined;
    this.#tell({ to: "connection", event: { type: "lost", output: "" } });
    this.#check();
  }

  reboot(): void {
    this.node.reboot();
    this.drop();
  }

  checkHost(isHostGone: boolean): void {
    if (!this.isCheckingHost) return;
    this.isCheckingHost = false;
    this.#wasHostGone = isHostGone;
    this.#tell({ to: "connection", event: { type: "host-checked", isHostGone } });
  }

  /** The line is dead for longer than all attempts. */
  vanish(): void {
    this.drop();
    for (let attempt = 0; attempt < 8 && (this.connecting || this.timers.has("retry")); attempt++) {
      this.checkHost(true);
      if (this.connecting) this.refuseConnect(0);
      else this.wait();
    }
  }

  /** Time passes until the next timer is due. */
  wait(): boolean {
    const [next] = [...this.timers].sort((a, b) => a[1] - b[1]);
    // A node that does not hang answers a goodbye in time.
    if (!next || (next[0] === "goodbye" && !this.node.isFrozen)) return false;
    this.timers.delete(next[0]);
    this.wasUnanswered ||= next[0] === "goodbye";
    this.#now = Math.max(this.#now, next[1]);
    this.#tell(timerEvents[next[0]]);
    return true;
  }

  #tell(...messages: readonly SessionEvent[]): void {
    const { retryDelays, waitForLock, recorded } = this.#options;
    this.#isStopped ||= messages.some(({ event }) => event.type === "stop");
    for (const message of messages) {
      const { state, effects } = transition(this.state, message, {
        node: "n1",
        runId: "r1",
        retryDelays,
        waitForLock,
        resumed: recorded !== undefined,
        results: this.#report,
        now: this.#now,
        chance: 0.5,
      });
      this.state = state;
      for (const effect of effects) this.#carryOut(effect);
    }
    const { phase } = this.state.queue;
    const last = phase.at === "sent" ? phase.batch.steps.at(-1) : undefined;
    const wasSent = last !== undefined && this.#writtenKeys.has(last.key);
    this.#isReboot = phase.at === "rebooting" || (wasSent && last.plan.step.ends === "boot");
    this.#check();
  }

  #carryOut(effect: SessionEffect): void {
    switch (effect.do) {
      case "emit":
        return void this.events.push(effect.event);
      case "connect":
        holds(!this.connecting && !this.link, "one connection at a time");
        holds(this.state.queue.phase.at !== "dead", "what is over connects to nobody");
        this.tries += 1;
        this.#hasBegun &&= effect.attempt > 1;
        this.connecting = { flight: effect.withFlight ? this.#flight() : [], isReached: false };
        return;
      case "check-host":
        this.isCheckingHost = true;
        return;
      case "start-beat":
      case "stop-beat":
        holds(this.#isBeating === (effect.do === "stop-beat"), "a beat starts once and ends once");
        this.#isBeating = effect.do === "start-beat";
        return;
      case "close-channel":
        return void (this.link && this.link.sent.splice(0));
      case "disconnect":
        if (this.link) this.node.follower = undefined;
        this.link = undefined;
        return;
      case "start-timer":
        return void this.timers.set(effect.timer, this.#now + effect.milliseconds);
      case "clear-timer":
        return void this.timers.delete(effect.timer);
      case "write-segment":
        return this.#write(effect);
      case "report-segment":
        return void this.events.push({ type: "node.segment", node: "n1", exchange: 0, steps: 0, bytes: 0 });
      case "transmit":
        return this.#transmit(effect.what);
      case "send-command":
        return this.#say(effect.text.trim());
      case "send-blobs":
        holds(this.#isQuestionOpen, "what is not asked is not answered");
        holds(this.link?.answered.has(this.#lastNeed) === false, "a question for blobs is answered once a connection");
        this.link?.answered.add(this.#lastNeed);
        return void this.link?.sent.push({ do: "blobs", names: effect.names });
      case "end-step":
        return this.#report.endWithoutNode(effect.key, effect);
      case "return":
        this.#checkEnd(effect);
        return void this.ended.push(effect);
      case "rested":
      case "finished":
        return void this.ended.push(effect);
    }
  }

  #write({ number, batch, launch }: Extract<SessionEffect, { do: "write-segment" }>): void {
    const keys = batch.steps.map(({ key }) => key);
    holds(!this.#isStopped || keys.every((key) => this.#writtenKeys.has(key)), "after a stop nothing new is sent");
    const hasFailed = ({ id }: UnresolvedStep) => this.#report.outcomeOf(stepKey(id)) === "failed";
    const isTried = ({ id }: UnresolvedStep) => keys.includes(stepKey(id));
    const mayTryAgain = this.#options.recorded !== undefined;
    holds(
      mayTryAgain || keys.length === 0 || this.#performing.filter(hasFailed).every(isTried),
      "after a failure nothing is sent",
    );
    for (const key of keys) this.#writtenKeys.add(key);
    this.#written = { launch, segment: { do: "segment", number, batch } };
  }

  #flight(): ModelCommand[] {
    if (!this.#written) return [];
    const { launch, segment } = this.#written;
    this.#note(segment.number);
    return launch ? [{ ...segment, do: "runner" }] : [segment];
  }

  #transmit(what: "flight" | "segment"): void {
    holds(this.link !== undefined, "what is sent needs a connection");
    if (what === "flight") return void this.link?.sent.push(...this.#flight());
    if (!this.#written) return;
    const { number } = this.#written.segment;
    holds(!this.#begunSegments.has(number), "a segment that was begun is not sent again");
    this.#note(number);
    this.link?.sent.push(this.#written.segment);
  }

  /** Notes a sent segment: one runner gets it a second time only after a drop. */
  #note(number: number): void {
    const sent = `${this.node.runner?.id ?? "new"} ${number}`;
    const before = this.#sent.get(sent);
    holds(before === undefined || before < this.drops, "a segment is sent once a connection");
    this.#sent.set(sent, this.drops);
  }

  #say(text: string): void {
    const [what = "", outcome = ""] = text.split(" ");
    if (what === "fin") this.link?.sent.push({ do: "fin", outcome });
    else if (what === "stop" || what === "abort") this.link?.sent.push({ do: what });
  }

  #checkEnd({ nodeFailure, failed }: Extract<SessionEffect, { do: "return" }>): void {
    // A node failure that was returned before is not returned with new facts.
    if (nodeFailure && this.ended.some((end) => end.do === "return" && end.nodeFailure)) return;
    const { node } = this;
    const wantsMore = !this.#hasBegun || this.tries >= this.#options.retryDelays.length;
    if (nodeFailure?.outcome === "unreachable") holds(wantsMore, "nobody gives up before all attempts");
    if (nodeFailure?.outcome === "unreachable")
      holds(!this.#isReboot || !this.#hasBegun, "a reboot is waited for longer");
    const code = nodeFailure?.problem.code;
    const said = (line: RegExp) => node.journal.slice(node.start).some((one) => line.test(one));
    if (code === "RUN_ABANDONED") holds(said(/^bye /), "only a runner's last word says that it ended");
    if (code === "NODE_LOCKED") holds(said(/^lock held /), "only a lock that is held refuses us");
    if (code === "REBOOT_TIMEOUT") holds(!this.isUndisturbed || this.#hasFlightBroken, "a node that came back is met");
    if (code === "INTERRUPTED") holds(this.#isStopped, "only who is stopped is interrupted");
    if (code === "NODE_SHELL_UNUSABLE") holds(!this.#wasHostGone, "a broken connection says nothing of a shell");
    const isDone = !nodeFailure && !failed && !this.#isStopped;
    const isTold = this.#performing.every(({ id }) => this.#report.outcomeOf(stepKey(id)) !== undefined);
    if (isDone && !this.wasUnanswered) holds(isTold, "what is done was told");
  }

  #check(): void {
    holds(this.#isBeating === (this.link !== undefined), "a beat lives exactly while a connection does");
    holds(!this.#isStopped || !this.timers.has("lock"), "after a stop nobody waits for a lock");
    // A runner that was given up may have done more than its frames told.
    if (!this.wasUnanswered) expectEachOutcomeOnce(this.events, this.#options.recorded !== undefined);
  }
}

/** @throws when a claim does not hold */
function holds(claim: boolean, what: string): void {
  if (!claim) throw new Error(`this does not hold: ${what}`);
}

/** Checks that the events have each step's outcome once, except failed steps, which a resumed run tries again. */
function expectEachOutcomeOnce(events: readonly RunEventBody[], isResumed: boolean): void {
  const told = events.flatMap((event) =>
    event.type === "step.finished" && !(isResumed && ["failed", "interrupted"].includes(event.outcome))
      ? [event.step]
      : [],
  );
  holds(new Set(told).size === told.length, "the outcome of a step is told once");
}
