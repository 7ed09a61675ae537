import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { Frame } from "#engine/program/frames.ts";
import { framesInOrder, type Look, lookAt, lookText } from "#engine/program/look.ts";
import type { NodeBudget } from "./node-budget.ts";
import { nextBatch, type StepInputs } from "./next-segment.ts";
import { eventOfFrame } from "./runner-frames.ts";
import { batchResults } from "./segment-steps.ts";
import { toQueue, type Batch, type QueuedStep, type SessionEvent, type TransitionContext } from "./session-events.ts";
import type { SessionOptions } from "./session.ts";
import type { SessionState } from "./session-state.ts";
import type { SessionTransport } from "./session-transport.ts";
import { StepReport } from "./step-report.ts";

interface StagedStep extends QueuedStep {
  readonly stage: string;
}

/** Milliseconds after which a long look is reported. */
const quietMs = 4_000;
/** Characters of the node's budget that a frame costs beside its text. */
const frameCost = 128;

/** The results of looks that found all steps in order. */
interface InOrder {
  /** Reports the ends of the steps. */
  readonly report: (report: StepReport) => void;
  readonly events: readonly SessionEvent[];
}

/**
 * The looks of a session at its node (docs/runner.md, The look). Where all steps are in order, no runner is needed, and so neither lock nor
 * journal. A look is sent only if its steps were in order when the node's last run with them ended.
 */
export class NodeLooks {
  readonly #session: SessionOptions;
  readonly #run: RunVariables;
  readonly #transport: SessionTransport;
  /** The hashes of the looks at the batches that were sent to a runner in the present call of `perform`. */
  readonly #sent = new Set<string>();
  /** The parts that the node's shell has of earlier looks. */
  readonly #shell = new Set<string>();
  /** The number of looks that a node's shell began. */
  count = 0;

  constructor(session: SessionOptions, run: RunVariables, transport: SessionTransport) {
    this.#session = session;
    this.#run = run;
    this.#transport = transport;
  }

  /** Looks at all steps of some work; undefined: the work needs a runner, and no step was reported. */
  async look(
    work: readonly StagedStep[],
    state: SessionState,
    context: TransitionContext,
  ): Promise<InOrder | undefined> {
    this.#sent.clear();
    const { queue } = state;
    if (!this.#mayLook(state) || work.length === 0) return undefined;
    if (!queue.facts && work.some(({ draft }) => draft.needs.facts)) return undefined;
    const results = new StepReport({ node: context.node, emit: () => undefined, recorded: new Map() });
    for (const { key, draft, stage } of work) results.add(key, draft, stage);
    const found: ((report: StepReport) => void)[] = [];
    const note = (one: (report: StepReport) => void): void => {
      one(results);
      found.push(one);
    };
    const drafts = new Map([...queue.drafts, ...work.map(({ key, draft }) => [key, draft] as const)]);
    let inputs: StepInputs = { ...queue, drafts };
    let hello: Frame | undefined;
    for (let rest: readonly QueuedStep[] = work; rest.length > 0;) {
      const { steps, ends, registered, unrenderable, ...next } = nextBatch(rest, inputs, results, false);
      if (unrenderable) return undefined;
      for (const end of ends) if (end.do === "end-step") note((report) => report.endWithoutNode(end.key, end));
      inputs = { ...inputs, registered };
      rest = next.rest;
      if (steps.length === 0) continue;
      const look = lookAt(steps);
      const frames = look && (await this.#send(look, steps.length, results.budget));
      const [verdict, ...skipped] = frames?.at(-1)?.rest.split(" ") ?? [];
      if (!frames || verdict !== "in-order") return undefined;
      hello ??= frames.find(({ type }) => type === "hello");
      for (const { key, plan } of steps) note((report) => report.plan(key, plan));
      for (const frame of framesInOrder(steps, frames, new Set(skipped))) note((report) => report.take(frame));
      const batch = { steps, facts: false, isLast: false };
      inputs = { ...inputs, ...batchResults(inputs, batch, { ...context, results }).inputs };
    }
    const greeting = hello && eventOfFrame(hello, 0);
    const looked = toQueue({ type: "looked", steps: work, registered: inputs.registered });
    return {
      report: (report) => found.forEach((one) => one(report)),
      events: greeting ? [greeting, looked] : [looked],
    };
  }

  /** Whether the work may begin with a look: no runner lives or perhaps lives, and the run neither resumes nor has grants to use. */
  #mayLook({ runner, queue }: SessionState): boolean {
    const { looks, resumed, dryRun, grants } = this.#session;
    if (!looks || resumed || (!dryRun && grants.length > 0)) return false;
    return (
      runner.phase.at === "absent" && runner.connection === "none" && queue.phase.at === "idle" && !queue.isStopped
    );
  }

  /** Sends a look that was in order before; resolves with its frames, or undefined without a verdict. */
  async #send(look: Look, steps: number, budget: NodeBudget): Promise<readonly Frame[] | undefined> {
    const { looks, emit, node } = this.#session;
    if (!looks?.has(look.hash)) return undefined;
    if (!this.#transport.hasShell) this.#shell.clear();
    const text = lookText(this.#run, look, { now: Math.round(Date.now() / 1000), shell: this.#shell });
    const onFrame = ({ type, rest }: Frame): void => {
      budget.spend(frameCost + rest.length);
      if (type !== "hello") return;
      this.count += 1;
      emit({ type: "node.segment", node: node.name, exchange: this.count, steps, bytes: Buffer.byteLength(text) });
    };
    const reason = "its steps are being looked at";
    const quiet = setTimeout(() => emit({ type: "node.waiting", node: node.name, reason }), quietMs);
    return this.#transport.look(text, { limit: look.limit, onFrame }).finally(() => clearTimeout(quiet));
  }

  /** Notes a batch that is sent to a runner. */
  note({ steps }: Batch): void {
    const look = this.#session.looks && lookAt(steps);
    if (look) this.#sent.add(look.hash);
  }

  /** Keeps the looks at the batches of work that has left all its steps in order. */
  remember(work: readonly QueuedStep[], report: StepReport): void {
    const outcomes = work.map(({ key }) => report.outcomeOf(key));
    if (outcomes.every((outcome) => outcome === "ok" || outcome === "changed" || outcome === "skipped"))
      this.#session.looks?.add([...this.#sent]);
  }
}
