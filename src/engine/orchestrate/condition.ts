import type { Problem } from "#errors/problem.ts";
import { Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
import type { LiveRun } from "./live-run.ts";
import { ALL_NODES, type PlannedStage } from "./plan.ts";
import type { RunNode } from "./run-node.ts";
import { isBug, problemOf } from "./problem-of.ts";

/**
 * Why a stage does not run (on this node): a reason if it is left out, a problem if its condition cannot be evaluated,
 * undefined if it runs.
 */
export function reasonNotToRun(run: LiveRun, stage: PlannedStage, node?: RunNode): string | Problem | undefined {
  try {
    if (stage.when?.(run.scopeOf(node)) === false) return whenFalse(stage);
    return missingFor(run, stage, node);
  } catch (error) {
    if (error instanceof UnknownValue) {
      const { after } = error.unknown;
      return run.request.dryRun ? `unknown (after ${after})` : outputMissing(stage, after);
    }
    if (isBug(error)) run.noteBug();
    return problemOf(error);
  }
}

/** Whether the stage's condition is false on this node, independent of outputs still to come. */
export function isConditionFalse(run: LiveRun, { when }: PlannedStage, node: RunNode): boolean {
  try {
    return when?.(run.scopeOf(node)) === false;
  } catch {
    return false;
  }
}

function whenFalse({ condition }: PlannedStage): string {
  return condition === undefined ? "its “when” is false" : `not needed: ${condition} is false`;
}

/** The problem of a stage whose states need an output that no stage gave. Only a dry run may have such steps. */
function missingFor(run: LiveRun, stage: PlannedStage, node?: RunNode): Problem | undefined {
  if (run.request.dryRun || stage.task.kind !== "apply") return undefined;
  for (const name of stage.task.dependencies?.(run.scopeOf(node)) ?? stage.dependencies) {
    for (const other of stage.others?.get(name) ?? [""]) {
      const value = other === ALL_NODES ? run.outputs.valuesOf(name) : run.outputs.get(name, other || node?.name);
      if (value instanceof Unknown)
        return outputMissing(stage, value.after, other && `“${other}” has no such stage, or did not come through it`);
    }
  }
  return undefined;
}

/** The problem of a stage that needs an output which no stage gave. */
export function outputMissing(stage: PlannedStage, after: string, hint = ""): Problem {
  return {
    code: "STAGE_OUTPUT_UNKNOWN",
    message: `stage “${stage.id}” rests on what ${after} gives, and that gave nothing in this run`,
    at: stage.at,
    hint: hint || "the stage before was skipped: give both the same “when”",
  };
}
