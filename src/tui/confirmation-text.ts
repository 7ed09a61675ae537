import type { RunModel, StageModel } from "#engine/events/run-model.ts";

/** Stages that are named one by one; the rest is counted. */
const STAGES = 4;
/** Most nodes that are listed by name. */
const NAMES = 3;

/** The stages after a confirmation: “then: web on n1, n2, n3; restart on 40 nodes”; empty without any. */
export function upcomingStages({ stages }: Pick<RunModel, "stages">): string {
  const coming = stages.filter(({ state }) => state === "pending");
  if (coming.length === 0) return "";
  const told = coming.slice(0, STAGES).map(tellStage);
  const rest = coming.length - told.length;
  return `then: ${[...told, ...(rest > 0 ? [`${rest} more ${rest === 1 ? "stage" : "stages"}`] : [])].join("; ")}`;
}

function tellStage({ title, nodes }: StageModel): string {
  if (nodes.length === 0) return title;
  return `${title} on ${nodes.length <= NAMES ? nodes.join(", ") : `${nodes.length} nodes`}`;
}

/** The result of the last dry run of the same kind. */
export interface Foretold {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly wouldChange: number;
  readonly unknown: number;
  readonly failed: number;
  /** The project has not changed since. */
  readonly isSame: boolean;
}

/** “the dry run 12m ago: 7 would change, 2 unknown, 0 failed”, and whether the project has changed since. */
export function tellForetold({ wouldChange, unknown, failed, isSame }: Foretold, age: string): string {
  const told = [`${wouldChange} would change`, ...(unknown > 0 ? [`${unknown} unknown`] : []), `${failed} failed`];
  return `the dry run ${age} ago: ${told.join(", ")}${isSame ? "" : " (the project has changed since)"}`;
}
