import { createHash } from "node:crypto";
import type { Problem } from "#errors/problem.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import type { StageWork, WorkResult } from "#engine/session/session.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { followStages } from "./stage-tracker.ts";
import { isDenied, runAction } from "./run-action.ts";
import { reasonNotToRun, isConditionFalse } from "./condition.ts";
import { LastOutput } from "./last-output.ts";
import type { LiveRun } from "./live-run.ts";
import type { PlannedStage } from "./plan.ts";
import type { RunNode } from "./run-node.ts";
import { isBug, problemOf } from "./problem-of.ts";
import { toJson } from "./values-json.ts";

/** A stage that is about to run on the node, with its steps there. */
interface ReadyStage {
  readonly stage: PlannedStage;
  readonly steps: readonly UnresolvedStep[];
}

/** The outcome of some stages on a node. */
export interface PipelineEnd {
  readonly outcome: "ok" | "failed" | "unreachable" | "interrupted";
  readonly problem?: Problem;
  /** The stage that failed. */
  readonly stage?: PlannedStage;
  /** Further checks that failed behind the stage. */
  readonly alsoFailed?: readonly PlannedStage[];
}

/** Whether a stage runs on a node: with these steps, left out, or not because of a problem. */
type StageStart =
  { readonly steps: readonly UnresolvedStep[] } | { readonly isLeftOut: true } | { readonly problem: Problem };

/**
 * Takes one node through stages at its own pace: a barrier after each stage would let one dead node hold up all (F-13, F-14).
 * Adjacent stages of states go to the node together. A group ends before an action, a look, a time limit, a reconnect, or
 * a stage that needs its output; not if that stage's condition is false already. Stops at the first failure, except that further checks
 * follow an action that is a failed check; a failure on the node never rejects. `isLast`: the run has no further stage for this node.
 */
export async function runNodeStages(
  run: LiveRun,
  node: RunNode,
  stages: readonly PlannedStage[],
  { mayGoOn, isLast }: { readonly mayGoOn: () => boolean; readonly isLast: boolean },
): Promise<PipelineEnd> {
  let rest = stages;
  let held: PipelineEnd | undefined;
  while (rest[0] !== undefined) {
    const [stage] = rest;
    if (held && !stage.check) return held;
    if (!mayGoOn()) return held ?? { outcome: "interrupted" };
    if (stage.task.kind === "action") {
      const end = await runStageAction(run, stage, node);
      if (end.outcome !== "ok" && !(end.outcome === "failed" && stage.check)) return held ?? end;
      if (end.outcome === "failed") held = held ? { ...held, alsoFailed: [...(held.alsoFailed ?? []), stage] } : end;
      rest = rest.slice(1);
      continue;
    }
    const { group, consumed, problem } = await nextGroup(run, node, rest);
    if (problem) return fail(run, node, stage, problem);
    if (group.length > 0) {
      const end = await perform(run, node, group, isLast && consumed === rest.length);
      if (end.outcome !== "ok") return end;
    }
    rest = rest.slice(consumed);
  }
  return held ?? { outcome: "ok" };
}

async function runStageAction(run: LiveRun, stage: PlannedStage, node: RunNode): Promise<PipelineEnd> {
  const runs = skipUnlessNeeded(run, stage, node);
  if (runs !== true) return runs === false ? { outcome: "ok" } : fail(run, node, stage, runs);
  run.tracker.enter(stage.id);
  const { outcome, problem } = await runAction(run, stage, node);
  if (outcome === "failed") return fail(run, node, stage, problem as Problem);
  if (outcome === "interrupted") {
    run.tracker.leave(stage.id, node.name, "interrupted");
    return { outcome, stage };
  }
  run.tracker.leave(stage.id, node.name, "ok");
  return { outcome: "ok" };
}

function fail(run: LiveRun, node: RunNode, stage: PlannedStage, problem: Problem): PipelineEnd {
  run.tracker.leave(stage.id, node.name, isDenied(problem) ? "interrupted" : "failed");
  return { outcome: "failed", problem, stage };
}

/** The group at the beginning of `rest` that goes to the node together; `consumed` counts left-out stages, too. */
async function nextGroup(
  run: LiveRun,
  node: RunNode,
  rest: readonly PlannedStage[],
): Promise<{ readonly group: readonly ReadyStage[]; readonly consumed: number; readonly problem?: Problem }> {
  const group: ReadyStage[] = [];
  let consumed = 0;
  for (const stage of rest) {
    if (!isConditionFalse(run, stage, node) && (stage.task.kind === "action" || isCutBefore(stage, group))) break;
    const start = await startOf(run, node, stage);
    if ("problem" in start) {
      // The stages before this one run first, so that the problem is reported at its turn.
      if (consumed === 0) return { group, consumed, problem: start.problem };
      break;
    }
    if ("steps" in start) group.push({ stage, steps: start.steps });
    consumed++;
  }
  return { group, consumed };
}

function isCutBefore(stage: PlannedStage, group: readonly ReadyStage[]): boolean {
  const last = group.at(-1);
  if (last === undefined) return false;
  const isTimed = stage.timeout !== undefined || last.stage.timeout !== undefined;
  const isLook = stage.task.kind === "look" || last.stage.task.kind === "look";
  const isDependent = group.some((ready) => stage.dependencies.has(ready.stage.register));
  return isTimed || isLook || isDependent || stage.reconnect === true;
}

async function startOf(run: LiveRun, node: RunNode, stage: PlannedStage): Promise<StageStart> {
  const runs = skipUnlessNeeded(run, stage, node);
  if (runs === false) return { isLeftOut: true };
  if (runs !== true) return { problem: runs };
  if (stage.task.kind === "action") throw new Error(`stage ${stage.id} has no steps`);
  if (stage.task.kind === "look") return { steps: [] };
  try {
    return { steps: run.plan.stepCache?.take(stage, node.name) ?? (await stage.task.expand(run.scopeOf(node))) };
  } catch (error) {
    if (isBug(error)) run.noteBug();
    return { problem: problemOf(error) };
  }
}

/** Ends a stage that does not run on this node as skipped. Returns whether the stage runs, or a problem if its condition cannot be evaluated. */
function skipUnlessNeeded(run: LiveRun, stage: PlannedStage, node: RunNode): boolean | Problem {
  const reason = stage.skip ?? reasonNotToRun(run, stage, node);
  if (typeof reason === "object") return reason;
  if (reason === undefined) return true;
  run.outputs.set(stage.register, node.name, new Unknown(`stage ${stage.id} (skipped)`));
  run.tracker.leave(stage.id, node.name, "skipped", reason);
  return false;
}

async function perform(
  run: LiveRun,
  node: RunNode,
  group: readonly ReadyStage[],
  isLast: boolean,
): Promise<PipelineEnd> {
  const last = new LastOutput();
  const watch = followStages(run.tracker, node, group);
  node.watch = {
    ...watch,
    before: (event) => {
      last.handle(event);
      watch.before(event);
    },
  };
  try {
    const result = await performInTime(run, node, group, { isLast, last });
    return keepResult(run, node, group, result);
  } catch (error) {
    // A late value may make a step invalid: an error of its state. Other errors are bugs; they fail this node alone.
    if (isBug(error)) run.noteBug();
    return fail(run, node, (group[0] as ReadyStage).stage, problemOf(error));
  }
}

/** Performs a group in the node's session; aborts it when the stage's time limit expires. */
async function performInTime(
  run: LiveRun,
  node: RunNode,
  group: readonly ReadyStage[],
  { isLast, last }: { readonly isLast: boolean; readonly last: LastOutput },
): Promise<WorkResult> {
  const [{ stage }] = group as readonly [ReadyStage, ...ReadyStage[]];
  run.tracker.enter(stage.id);
  if (stage.reconnect && !run.request.dryRun) await node.rest();
  const session = node.session();
  let isLate = false;
  const expire = (): void => {
    isLate = true;
    session.abort();
  };
  const timer = stage.timeout === undefined ? undefined : setTimeout(expire, stage.timeout * 1000);
  try {
    const work: readonly StageWork[] = group.map(({ stage: { id }, steps }) => ({ stage: id, drafts: steps }));
    const result = await session.perform(stage.task.kind === "look" ? [] : work, {
      isLast,
      outputs: () =>
        toJson(
          run.outputs.usedBy(
            group.map((ready) => ready.stage),
            node.name,
          ),
        ),
    });
    if (stage.task.kind === "look" && result.outcome === "done")
      return { ...result, finishedStages: new Set([stage.id]) };
    if (!isLate || result.outcome === "done") return result;
    return { ...result, outcome: "failed", problem: stageTimeout(stage, node, last) };
  } finally {
    clearTimeout(timer);
  }
}

function stageTimeout({ id, at, timeout }: PlannedStage, node: RunNode, last: LastOutput): Problem {
  return {
    code: "STAGE_TIMEOUT",
    message: `stage “${id}” took longer than ${timeout} s on “${node.name}”`,
    at,
    ...last.describe(`on ${node.name}`),
    hint: "give the stage a longer “timeout”, or look at the step that was running",
  };
}

function keepResult(run: LiveRun, node: RunNode, group: readonly ReadyStage[], result: WorkResult): PipelineEnd {
  const isDone = result.outcome === "done";
  let broken: PlannedStage | undefined;
  for (const { stage, steps } of group) {
    keepOutputs(run, node, stage, steps, result);
    node.hadWork ||= steps.some(({ isCheck }) => isCheck !== true);
    noteApplied(run, node, { stage, steps }, result);
    // Behind a failed check further checks run, also those of later stages.
    if (isDone || (result.finishedStages.has(stage.id) && (broken === undefined || steps.length > 0))) {
      run.tracker.leave(stage.id, node.name, "ok");
    } else if (broken === undefined || result.failedStages?.has(stage.id) === true) {
      broken ??= stage;
      run.tracker.leave(stage.id, node.name, isInterrupted(result) ? "interrupted" : "failed");
    }
  }
  if (isDone) return { outcome: "ok" };
  const outcome = isInterrupted(result) ? "interrupted" : result.outcome === "unreachable" ? "unreachable" : "failed";
  return { outcome, ...(result.problem && { problem: result.problem }), ...(broken && { stage: broken }) };
}

function noteApplied(run: LiveRun, node: RunNode, { stage, steps }: ReadyStage, { leaves }: WorkResult): void {
  if (stage.task.kind !== "apply" || !stage.task.plain) return;
  const { what, params, on } = run.request;
  node.applied.push({
    stage: `${"name" in what ? what.name : what.kind} ${stage.register}`,
    params: createHash("sha256")
      .update(JSON.stringify([params, what.kind === "orchestration" && on]))
      .digest("hex")
      .slice(0, 16),
    leaves: steps.flatMap(({ id }) => (leaves?.get(id) ?? []).map((one) => ({ ...one, step: id }))),
    doubts: steps.flatMap(({ id }) => (leaves?.get(id) ? [] : id)),
    ...omitUndefined({ plain: stage.task.plain.get(node.name) }),
  });
}

function isInterrupted({ outcome }: WorkResult): boolean {
  return outcome === "interrupted" || outcome === "not-started";
}

/** Keeps `stages.NAME.REGISTER` of this node; in a dry run, the output of a step that would change something is unknown. */
function keepOutputs(
  run: LiveRun,
  node: RunNode,
  stage: PlannedStage,
  steps: readonly UnresolvedStep[],
  { registered }: WorkResult,
): void {
  const outputs = Object.create(null) as Record<string, unknown>;
  for (const { register, title } of steps) {
    if (register === undefined || !registered.has(register)) continue;
    outputs[register] = registered.get(register) ?? new Unknown(`${stage.id}/${title}`);
  }
  run.outputs.set(stage.register, node.name, outputs);
}
