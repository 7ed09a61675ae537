import type { RunModel } from "#engine/events/run-model.ts";

/** Whether a run has ended with something left to do, so that “runs resume” goes on with it. */
export function mayResume({ state, outcome, dryRun, runId }: RunModel): boolean {
  return state === "finished" && outcome !== "done" && !dryRun && runId !== "";
}
