import { PassThrough } from "node:stream";
import type { NodeOutcome } from "#engine/events/event.ts";
import type { RunVariables } from "#engine/program/bootstrap.ts";
import type { NodeSession, OpenSession, SessionOptions, StageWork, WorkResult } from "#engine/session/session.ts";
import type { ManagedRemnant } from "#engine/states/remnants.ts";
import type { Registered, UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Channel, Host } from "#engine/transport/host.ts";
import type { Problem } from "#errors/problem.ts";

/** The prepared outcome of a step on a node. */
export interface PreparedStep {
  readonly outcome?: "ok" | "changed" | "failed" | "interrupted";
  readonly registered?: Partial<Registered>;
  /** The step ends when this promise is fulfilled. */
  readonly after?: Promise<unknown>;
  /** Called when the step begins. */
  readonly begins?: () => void;
}

export interface FakeNodes {
  readonly open: OpenSession;
  /** The calls in order: `n1 connect`, `n1 step web/config`, `n1 perform [a+b]`, `n1 finish done`. */
  readonly log: string[];
  readonly options: Map<string, SessionOptions>;
}

/**
 * Sessions with nodes that do not exist. A step without a prepared outcome (keys: `STEP` or `NODE STEP`) fails the test; `unreachable` nodes
 * never connect.
 */
export function fakeNodes(
  prepared: Readonly<Record<string, PreparedStep>>,
  { unreachable = [] }: { unreachable?: readonly string[] } = {},
): FakeNodes {
  const log: string[] = [];
  const options = new Map<string, SessionOptions>();
  const open: OpenSession = (given) => {
    const { name } = given.node;
    if (options.has(name)) throw new Error(`a second session to ${name}`);
    options.set(name, given);
    return new FakeSession(given, { prepared, log, isGone: unreachable.includes(name) });
  };
  return { open, log, options };
}

/** The variables of a run on n1. */
export const runOnNode: RunVariables = {
  nonce: "f".repeat(32),
  stateDir: "/s",
  runId: "r",
  attempt: 1,
  who: "w",
  node: "n1",
  dryRun: false,
  grants: [],
  login: "root",
};

/** A channel with this output, which accepts any input. */
export function fakeChannel(stdout: AsyncIterable<Uint8Array>, more: Partial<Channel> = {}): Channel {
  return {
    stdout,
    write: () => Promise.resolve(),
    bytesTaken: () => 0,
    end: () => undefined,
    close: () => undefined,
    exit: Promise.resolve({}),
    stderrTail: () => "",
    ...more,
  };
}

/** A host whose channel prints nothing until its input ends or it is closed. */
export function silentHost(): Host {
  const silence = new PassThrough();
  const end = () => void silence.end();
  const channel = fakeChannel(silence, { end, close: end });
  return { name: "n1", exec: () => Promise.resolve(channel) } as unknown as Host;
}

interface FakeNode {
  readonly prepared: Readonly<Record<string, PreparedStep>>;
  readonly log: string[];
  readonly isGone: boolean;
}

class FakeSession implements NodeSession {
  readonly #options: SessionOptions;
  readonly #fake: FakeNode;
  readonly #name: string;
  #isConnected = false;
  #isBusy = false;
  #isFinished = false;
  #isStopped = false;
  #abort = Promise.withResolvers<"aborted">();
  exchanges = 0;

  constructor(options: SessionOptions, fake: FakeNode) {
    this.#options = options;
    this.#fake = fake;
    this.#name = options.node.name;
  }

  async perform(work: readonly StageWork[]): Promise<WorkResult> {
    if (this.#isBusy) throw new Error(`${this.#name}: perform while performing`);
    if (this.#isFinished) throw new Error(`${this.#name}: perform after finish`);
    this.#isBusy = true;
    try {
      return await this.#perform(work);
    } finally {
      this.#isBusy = false;
    }
  }

  async #perform(work: readonly StageWork[]): Promise<WorkResult> {
    const registered = new Map<string, Registered | undefined>();
    const finishedStages = new Set<string>();
    const leaves = new Map<string, readonly ManagedRemnant[] | undefined>();
    const end = (outcome: NodeOutcome, problem?: Problem): WorkResult => ({
      outcome,
      registered,
      finishedStages,
      leaves,
      ...(problem && { problem }),
    });
    if (this.#fake.isGone)
      return end("unreachable", { code: "HOST_UNREACHABLE", message: `${this.#name} does not answer` });
    if (!this.#isConnected) this.#say("connect");
    this.#isConnected = true;
    this.#say(`perform [${work.map(({ stage }) => stage).join("+")}]`);
    this.exchanges++;
    for (const { stage, drafts } of work) {
      for (const draft of drafts) {
        if (this.#isStopped) return end("interrupted");
        const rendered = draft.render({ steps: registered });
        const outcome = await this.#step(stage, draft, registered);
        if (outcome === "failed")
          return end("failed", { code: "SERVICE_FAILED", message: `${draft.title} failed`, at: draft.at });
        if (outcome === "interrupted") return end("interrupted");
        if (rendered.kind === "step") leaves.set(draft.id, rendered.plan.leaves ?? []);
        else leaves.set(draft.id, draft.isUntrusted || rendered.kind === "unknown" ? undefined : []);
      }
      finishedStages.add(stage);
    }
    return end("done");
  }

  async #step(stage: string, draft: UnresolvedStep, registered: Map<string, Registered | undefined>) {
    const { emit, dryRun } = this.#options;
    const { id, title, module, register } = draft;
    const named = { node: this.#name, stage, step: id, title, module };
    const rendered = draft.render({ steps: registered });
    if (rendered.kind === "unknown") {
      this.#say(`unknown ${id}`);
      emit({ type: "step.finished", ...named, outcome: "unknown", reason: `after ${rendered.after}` });
      if (register !== undefined) registered.set(register, undefined);
      return "ok";
    }
    const step = this.#fake.prepared[`${this.#name} ${id}`] ?? this.#fake.prepared[id];
    if (step === undefined) throw new Error(`nobody taught ${this.#name} the step ${id}`);
    this.#say(`step ${id}`);
    emit({ type: "step.started", ...named });
    step.begins?.();
    const ended = await Promise.race([this.#abort.promise, step.after ?? Promise.resolve()]);
    const taught = ended === "aborted" ? "interrupted" : (step.outcome ?? "ok");
    const outcome = dryRun && taught === "changed" ? "would-change" : taught;
    emit({ type: "step.finished", ...named, outcome });
    if (register !== undefined) registered.set(register, outcome === "would-change" ? undefined : fullOf(step));
    return outcome;
  }

  host(): undefined {
    return undefined;
  }

  rest(): Promise<void> {
    if (this.#isBusy) throw new Error(`${this.#name}: rest while performing`);
    this.#isConnected = false;
    this.#fake.log.push(`${this.#name} rest`);
    return Promise.resolve();
  }

  stop(): void {
    this.#isStopped = true;
    this.#say("stop");
  }

  abort(): void {
    this.#isStopped = true;
    this.#say("abort");
    this.#abort.resolve("aborted");
  }

  async finish(outcome: NodeOutcome, problem?: Problem): Promise<void> {
    if (this.#isBusy) throw new Error(`${this.#name}: finish while performing`);
    if (this.#isFinished) throw new Error(`${this.#name}: finish twice`);
    this.#isFinished = true;
    this.#say(`finish ${outcome}`);
    this.#options.emit({ type: "node.finished", node: this.#name, outcome, ...(problem && { problem }) });
    return Promise.resolve();
  }

  #say(what: string): void {
    this.#fake.log.push(`${this.#name} ${what}`);
  }
}

function fullOf({ outcome, registered }: PreparedStep): Registered {
  return { changed: outcome === "changed", rc: 0, stdout: "", facts: {}, ...registered };
}
