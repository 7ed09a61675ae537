import type { NodeOutcome, Outcome } from "#engine/events/event.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import type { StageWork, WorkResult } from "./session.ts";
import type { StepDraft } from "#engine/states/planned-step.ts";
import type { Problem } from "#errors/problem.ts";
import type { StepResults, NodeFailure } from "./session-events.ts";

interface EndedWork {
  readonly node: string;
  readonly runId: string;
  readonly heard: StepResults;
  readonly registered: WorkResult["registered"];
  readonly isStopped: boolean;
  readonly nodeFailure: NodeFailure | undefined;
  /** Why its first failed step failed. */
  readonly failed: Problem | undefined;
}

/** What came of the work. */
export function workResult(work: readonly StageWork[], end: EndedWork): WorkResult {
  const { heard, failed, isStopped, registered } = end;
  const outcomes = (drafts: readonly StepDraft[]) => drafts.map(({ id }) => heard.outcomeOf(stepKey(id)));
  const isFinished = ({ drafts }: StageWork): boolean =>
    outcomes(drafts).every((outcome) => !isLeft(outcome) && outcome !== "failed");
  const nodeFailure = end.nodeFailure ?? (failed || isStopped ? undefined : missingEnd(work, end));
  const problem = nodeFailure?.problem ?? failed;
  // What was stopped in its last step, and came to the end of it, is done.
  const isCut = isStopped && !work.every(isFinished);
  const outcome: NodeOutcome = nodeFailure?.outcome ?? (failed ? "failed" : isCut ? "interrupted" : "done");
  return {
    outcome,
    registered,
    finishedStages: new Set(work.filter(isFinished).map(({ stage }) => stage)),
    ...(problem && { problem }),
  };
}

/** A step that was not told to be over, or was broken off. */
function isLeft(outcome: Outcome | undefined): boolean {
  return outcome === undefined || outcome === "interrupted";
}

/** What was to be done and was not told to be done is not done, whatever the reason. */
function missingEnd(work: readonly StageWork[], { heard, node, runId }: EndedWork): NodeFailure | undefined {
  const missing = work.flatMap(({ drafts }) => drafts).find(({ id }) => isLeft(heard.outcomeOf(stepKey(id))));
  if (!missing) return undefined;
  const problem: Problem = {
    code: "RUN_ABANDONED",
    message: `“${missing.title}” was sent to ${node}, but did not run`,
    at: missing.at,
    hint: `go on with: kcore runs resume ${runId}`,
  };
  return { outcome: "failed", problem };
}
