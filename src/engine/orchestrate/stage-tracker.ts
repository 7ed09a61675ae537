import type { Emit, RunEventBody } from "#engine/events/event.ts";

export type StageOutcome = Extract<RunEventBody, { type: "stage.finished" }>["outcome"];

interface TrackedStage {
  readonly waiting: Set<string>;
  started: boolean;
  finished: boolean;
  readonly outcomes: { readonly node: string; readonly outcome: StageOutcome; readonly reason?: string }[];
}

const RANK: readonly StageOutcome[] = ["failed", "interrupted", "ok", "skipped"];

/** Emits the start of a stage on its first node and its end on its last node, each exactly once. */
export class StageTracker {
  readonly #emit: Emit;
  readonly #stages = new Map<string, TrackedStage>();

  constructor(emit: Emit) {
    this.#emit = emit;
  }

  /** Adds a stage with the nodes that have to leave it; a stage without nodes is left once, as node "". */
  expect(stage: string, nodes: readonly string[] = [""]): void {
    this.#stages.set(stage, { waiting: new Set(nodes), started: false, finished: false, outcomes: [] });
  }

  enter(stage: string): void {
    const tracked = this.#stages.get(stage);
    if (tracked === undefined || tracked.started) return;
    tracked.started = true;
    this.#emit({ type: "stage.started", stage });
  }

  /** Takes note that a node has left a stage; only the first call for a node counts. */
  leave(stage: string, node: string, outcome: StageOutcome, reason?: string): void {
    const tracked = this.#stages.get(stage);
    if (!tracked?.waiting.delete(node)) return;
    // A stage that all nodes skip never starts.
    if (outcome !== "skipped") this.enter(stage);
    tracked.outcomes.push({ node, outcome, ...(reason !== undefined && { reason }) });
    if (tracked.waiting.size === 0) this.#finish(stage, tracked);
  }

  /** Ends all stages that have not ended, so that each stage of the outline has an end. */
  close(reason: string): void {
    for (const [stage, tracked] of this.#stages) {
      if (tracked.finished) continue;
      if (tracked.started) this.#finish(stage, tracked, reason);
      else {
        tracked.finished = true;
        this.#emit({ type: "stage.finished", stage, outcome: "skipped", reason });
      }
    }
  }

  #finish(stage: string, tracked: TrackedStage, otherwise?: string): void {
    tracked.finished = true;
    const outcome = RANK.find((rank) => tracked.outcomes.some((one) => one.outcome === rank)) ?? "interrupted";
    const reason = reasonOf(tracked, outcome) ?? otherwise;
    this.#emit({ type: "stage.finished", stage, outcome, ...(reason !== undefined && { reason }) });
  }
}

function reasonOf({ outcomes }: TrackedStage, outcome: StageOutcome): string | undefined {
  const those = outcomes.filter((one) => one.outcome === outcome);
  if (outcome === "failed" && those[0] !== undefined && those[0].node !== "")
    return `${those.length} of ${outcomes.length} ${outcomes.length === 1 ? "node" : "nodes"}: ${those.map(({ node }) => node).join(", ")}`;
  return those[0]?.reason;
}
