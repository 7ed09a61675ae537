import type { Emit, RunEventBody } from "#engine/events/event.ts";
import { isFinal } from "#engine/session/step-record.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { RunNode, SessionWatch } from "./run-node.ts";

export type StageOutcome = Extract<RunEventBody, { type: "stage.finished" }>["outcome"];

interface TrackedStage {
  readonly waiting: Set<string>;
  started: boolean;
  finished: boolean;
  readonly outcomes: { readonly node: string; readonly outcome: StageOutcome; readonly reason?: string }[];
}

/** A stage's outcome is the first of these that any node of the stage has. */
const RANK: readonly StageOutcome[] = ["failed", "interrupted", "ok", "skipped"];

/** Emits the start of a stage on its first node and its end on its last node, each at most once. */
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

  /** Records that a node has left a stage; only the first call for a node counts. */
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
  const matching = outcomes.filter((one) => one.outcome === outcome);
  if (outcome === "failed" && matching[0] !== undefined && matching[0].node !== "")
    return `${matching.length} of ${outcomes.length} ${outcomes.length === 1 ? "node" : "nodes"}: ${matching.map(({ node }) => node).join(", ")}`;
  return matching[0]?.reason;
}

interface FollowedStage {
  readonly id: string;
  /** Ids of steps that have not ended. */
  readonly open: Set<string>;
}

/**
 * Follows the stages that went to a node together: each begins with its first step and ends with its last step. A resumed run
 * does not wait for steps in its record, since the node does not report them again.
 */
export function followStages(
  tracker: StageTracker,
  node: RunNode,
  group: readonly { readonly stage: { readonly id: string }; readonly steps: readonly UnresolvedStep[] }[],
): SessionWatch {
  const isOpen = ({ id }: UnresolvedStep): boolean => !isFinal(node.recorded.get(id)?.at(-1));
  const stages = group.map(({ stage, steps }): FollowedStage => {
    const open = new Set(steps.filter(isOpen).map(({ id }) => id));
    return { id: stage.id, open };
  });
  const stepsOf = (stage: string) => stages.find(({ id }) => id === stage)?.open;
  return {
    before: (event) => {
      if (!isOfStep(event) || !stepsOf(event.stage)) return;
      tracker.enter(event.stage);
      if (event.type === "step.started") stepsOf(event.stage)?.add(event.step);
    },
    after: (event) => {
      if (event.type !== "step.finished" || !isFinal(event.outcome)) return;
      stepsOf(event.stage)?.delete(event.step);
      for (const { id, open } of stages) {
        if (open.size > 0) return;
        tracker.leave(id, node.name, "ok");
      }
    },
  };
}

function isOfStep(event: RunEventBody): event is Extract<RunEventBody, { type: "step.started" | "step.finished" }> {
  return event.type === "step.started" || event.type === "step.finished";
}
