import type { Problem } from "#errors/problem.ts";
import type { Emit, NodeOutcome, Outcome, RunEventBody } from "#engine/events/event.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";
import type { NodeSession } from "#engine/session/session.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { NodeEnd } from "./action.ts";
import type { Applied } from "./managed.ts";

/** Called with each event of a node's session, before and after the run emits the event. */
export interface SessionWatch {
  readonly before: (event: RunEventBody) => void;
  readonly after: (event: RunEventBody) => void;
}

const ignoreEvents: SessionWatch = { before: () => undefined, after: () => undefined };

/** One node in a run: its session, opened when first needed, and its end. */
export class RunNode {
  readonly entry: NodeEntry;
  readonly #open: (emit: Emit) => NodeSession;
  readonly #emit: Emit;
  #session: NodeSession | undefined;
  #wasStarted = false;
  #wasTouched = false;
  #end: NodeEnd | undefined;
  /** By step id, the outcomes in the earlier parts of a resumed run. */
  readonly recorded: ReadonlyMap<string, readonly Outcome[]>;
  watch: SessionWatch = ignoreEvents;
  /** Whether a stage had steps for the node that are no checks. */
  hadWork = false;
  /** The states that stages applied to the node. */
  readonly applied: Applied[] = [];

  constructor(
    entry: NodeEntry,
    recorded: ReadonlyMap<string, readonly Outcome[]>,
    emit: Emit,
    open: (emit: Emit) => NodeSession,
  ) {
    this.entry = entry;
    this.recorded = recorded;
    this.#emit = emit;
    this.#open = open;
  }

  get name(): string {
    return this.entry.name;
  }

  get isAlive(): boolean {
    return this.#end === undefined;
  }

  /** The end of the node's part in the run; undefined until then. */
  get ended(): NodeEnd | undefined {
    return this.#end;
  }

  get outcome(): NodeOutcome | undefined {
    return this.#end?.outcome;
  }

  get problem(): Problem | undefined {
    return this.#end?.problem;
  }

  /** Whether the node's session was opened. */
  get wasStarted(): boolean {
    return this.#wasStarted;
  }

  session(): NodeSession {
    this.#wasStarted = true;
    return (this.#session ??= this.#open((event) => {
      if (event.type === "step.finished") this.touch(event.outcome);
      this.watch.before(event);
      this.#emit(event);
      this.watch.after(event);
    }));
  }

  /** Whether a step or action may have changed the node. */
  get wasTouched(): boolean {
    return this.#wasTouched;
  }

  /** Records the outcome of a step on the node, or of an action for it. */
  touch(outcome: Outcome): void {
    this.#wasTouched ||= outcome !== "ok" && outcome !== "skipped" && outcome !== "unknown";
  }

  /** Releases connection and lock until the node's next stage. */
  async rest(): Promise<void> {
    if (this.isAlive) await this.#session?.rest();
  }

  stop(): void {
    if (this.isAlive) this.#session?.stop();
  }

  abort(): void {
    if (this.isAlive) this.#session?.abort();
  }

  /**
   * Ends the node's part in the run: releases lock, connection and session, since the results of a thousand nodes would fill the memory.
   * Only the first call counts.
   */
  async end({ outcome, problem, stage }: NodeEnd): Promise<void> {
    if (this.#end !== undefined) return;
    this.#end = { outcome, ...omitUndefined({ problem, stage }) };
    try {
      if (this.#session) await this.#session.finish(outcome, problem);
      else this.#emit({ type: "node.finished", node: this.name, outcome, ...(problem && { problem }) });
    } finally {
      this.#session = undefined;
      this.watch = ignoreEvents;
    }
  }
}
