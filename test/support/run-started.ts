import type { RunEventBody, StageOutline } from "#engine/events/event.ts";

type Started = Extract<RunEventBody, { type: "run.started" }>;

/** The first event of a run; a stage given by its name has all nodes. */
export function runStarted({
  stages = [],
  ...changes
}: Partial<Omit<Started, "stages">> & { readonly stages?: readonly (string | StageOutline)[] } = {}): Started {
  const { nodes = ["n1"] } = changes;
  return {
    type: "run.started",
    runId: "20261121-061500-a1b2",
    title: "t",
    command: "kcore",
    nodes,
    dryRun: false,
    who: "op",
    ...changes,
    stages: stages.map((stage) => (typeof stage === "string" ? { id: stage, title: stage, nodes } : stage)),
  };
}
