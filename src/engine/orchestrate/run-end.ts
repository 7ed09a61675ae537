import { exitCodes, type ExitCode, type Problem } from "#errors/problem.ts";
import type { RunEvent, RunEventBody } from "#engine/events/event.ts";
import type { RunPlan } from "./plan.ts";
import { isDenied } from "./run-action.ts";
import type { RunNode } from "./run-node.ts";

type RunOutcome = Extract<RunEventBody, { type: "run.finished" }>["outcome"];

/** The facts that decide a run's outcome. */
export interface EndedRun {
  readonly nodes: readonly Pick<RunNode, "outcome" | "problem">[];
  /** Present if no further stage could start, with the problem that is the cause. */
  readonly halt: { readonly problem?: Problem } | undefined;
  /** Whether a stop or abort left stages undone. */
  readonly isIncomplete: boolean;
  readonly isStopping: boolean;
  readonly hasBug: boolean;
}

/** The outcome and exit code of a run whose nodes have all ended. */
export function runEnd(run: EndedRun): { readonly outcome: RunOutcome; readonly exitCode: ExitCode } {
  const { nodes, halt } = run;
  const ends = new Set(nodes.map(({ outcome }) => outcome));
  const isIncomplete = run.isIncomplete || ends.has("interrupted") || ends.has("not-started");
  if (run.hasBug) return { outcome: "failed", exitCode: exitCodes.bug };
  const wasDenied = isDenied(halt?.problem) || nodes.some(({ problem }) => isDenied(problem));
  if (wasDenied && !ends.has("failed")) return { outcome: "interrupted", exitCode: exitCodes.interrupted };
  if (run.isStopping && isIncomplete) return { outcome: "interrupted", exitCode: exitCodes.interrupted };
  if (ends.has("failed") || isHaltFailure(run)) return { outcome: "failed", exitCode: exitCodes.failed };
  if (ends.has("unreachable")) return { outcome: "unreachable", exitCode: exitCodes.unreachable };
  if (ends.has("interrupted")) return { outcome: "failed", exitCode: exitCodes.failed };
  return { outcome: "done", exitCode: exitCodes.done };
}

/** Whether a halt makes the run “failed”: a run that halted only because too many nodes were unreachable is “unreachable”. */
function isHaltFailure({ halt, nodes }: EndedRun): boolean {
  return (
    halt !== undefined && !nodes.some(({ outcome, problem }) => outcome === "unreachable" && problem === halt.problem)
  );
}

/** Whether an earlier part of a resumed run began the plan's `onFailure` stages: then only those stages continue. */
export function hasBegunOnFailure({ onFailure }: RunPlan, earlier: readonly RunEvent[]): boolean {
  const ids = new Set(onFailure?.filter(({ nodes }) => nodes).map(({ id }) => id));
  return ids.size > 0 && earlier.some((event) => event.type === "stage.started" && ids.has(event.stage));
}
