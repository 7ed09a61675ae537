import type { NodeOutcome, Outcome } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import type { StageWork, WorkResult } from "./session.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { Problem } from "#errors/problem.ts";
import type { StepResults, NodeFailure } from "./session-events.ts";

interface EndedWork {
  readonly node: string;
  readonly runId: string;
  readonly results: StepResults;
  readonly registered: WorkResult["registered"];
  readonly isStopped: boolean;
  readonly nodeFailure: NodeFailure | undefined;
  /** Why the first failed step failed. */
  readonly failed: Problem | undefined;
}

export function workResult(work: readonly StageWork[], end: EndedWork): WorkResult {
  const { results, failed, isStopped, registered } = end;
  const outcomes = (drafts: readonly UnresolvedStep[]) => drafts.map(({ id }) => results.outcomeOf(stepKey(id)));
  const isFinished = ({ drafts }: StageWork): boolean =>
    outcomes(drafts).every((outcome) => !isUnfinished(outcome) && outcome !== "failed");
  const nodeFailure = end.nodeFailure ?? (failed || isStopped ? undefined : missingEnd(work, end));
  const problem = nodeFailure?.problem ?? failed;
  // Work that was stopped in its last step, and still came to its end, is done.
  const isCut = isStopped && !work.every(isFinished);
  const outcome: NodeOutcome = nodeFailure?.outcome ?? (failed ? "failed" : isCut ? "interrupted" : "done");
  return {
    outcome,
    registered,
    finishedStages: new Set(work.filter(isFinished).map(({ stage }) => stage)),
    failedStages: new Set(work.filter(({ drafts }) => outcomes(drafts).includes("failed")).map(({ stage }) => stage)),
    ...(problem && { problem }),
  };
}

/** Whether the step did not end, or was interrupted. */
function isUnfinished(outcome: Outcome | undefined): boolean {
  return outcome === undefined || outcome === "interrupted";
}

/** The failure for a step without an outcome: a step counts as done only if the node reported its end. */
function missingEnd(work: readonly StageWork[], { results, node, runId }: EndedWork): NodeFailure | undefined {
  const missing = work.flatMap(({ drafts }) => drafts).find(({ id }) => isUnfinished(results.outcomeOf(stepKey(id))));
  if (!missing) return undefined;
  const problem: Problem = {
    code: "RUN_ABANDONED",
    message: `“${missing.title}” was sent to ${node}, but did not run`,
    at: missing.at,
    hint: `go on with: kcore runs resume ${runId}`,
  };
  return { outcome: "failed", problem };
}
