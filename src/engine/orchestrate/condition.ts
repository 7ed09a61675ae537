import type { Problem } from "#errors/problem.ts";
import { Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
import type { LiveRun } from "./live-run.ts";
import type { PlannedStage } from "./plan.ts";
import type { RunNode } from "./run-node.ts";
import { isBug, problemOf } from "./problem-of.ts";

/**
 * Why a stage has no turn (on this node): a reason when it is left out, a problem when that cannot be told, undefined
 * when it has its turn.
 */
export function conditionAgainst(run: LiveRun, stage: PlannedStage, node?: RunNode): string | Problem | undefined {
  try {
    if (stage.when?.(run.scopeOf(node)) === false) return whenFalse(stage);
    return missingFor(run, stage, node);
  } catch (error) {
    if (error instanceof UnknownValue) {
      const { after } = error.unknown;
      return run.request.dryRun ? `unknown (after ${after})` : neverKnown(stage, after);
    }
    if (isBug(error)) run.noteBug();
    return problemOf(error);
  }
}

/** Whether the stage's condition is false on this node, whatever earlier stages have still to give. */
export function isNeedless(run: LiveRun, { when }: PlannedStage, node: RunNode): boolean {
  try {
    return when?.(run.scopeOf(node)) === false;
  } catch {
    return false;
  }
}

function whenFalse({ condition }: PlannedStage): string {
  return condition === undefined ? "its “when” is false" : `not needed: ${condition} is false`;
}

/** Steps drafted over unknown values are for dry runs; here they would go to the node as steps that never come. */
function missingFor(run: LiveRun, stage: PlannedStage, node?: RunNode): Problem | undefined {
  if (run.request.dryRun || stage.task.kind !== "apply") return undefined;
  for (const name of stage.task.rests?.(run.scopeOf(node)) ?? stage.rests) {
    for (const other of stage.others?.get(name) ?? [""]) {
      const value = run.outputs.get(name, other || node?.name);
      if (value instanceof Unknown)
        return neverKnown(stage, value.after, other && `“${other}” has no such stage, or did not come through it`);
    }
  }
  return undefined;
}

/** A stage that rests on the outputs of one which gave none. */
export function neverKnown(stage: PlannedStage, after: string, hint = ""): Problem {
  return {
    code: "STAGE_OUTPUT_UNKNOWN",
    message: `stage “${stage.id}” rests on what ${after} gives, and that gave nothing in this run`,
    at: stage.at,
    hint: hint || "the stage before was skipped: give both the same “when”",
  };
}
