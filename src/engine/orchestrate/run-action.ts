import { KcoreError, type Problem } from "#errors/problem.ts";
import { cleanText } from "#engine/events/clean.ts";
import type { Outcome, RunEventBody } from "#engine/events/event.ts";
import { Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
import { whileOpening } from "#engine/step/encrypted-value.ts";
import { secret } from "#engine/step/secret.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { challengeOf, type Action, type ActionContext, type ActionResult } from "./action.ts";
import { outputMissing } from "./condition.ts";
import { LastOutput } from "./last-output.ts";
import type { LiveRun } from "./live-run.ts";
import type { PlannedStage } from "./plan.ts";
import type { RunNode } from "./run-node.ts";
import type { RunRequest } from "./run-types.ts";
import { isBug, problemOf } from "./problem-of.ts";

/** Seconds for an action whose stage has no timeout. */
const DEFAULT_SECONDS = 3600;

export interface ActionEnd {
  readonly outcome: Extract<Outcome, "ok" | "changed" | "would-change" | "unknown" | "failed" | "interrupted">;
  readonly problem?: Problem;
}

/** Carries out a stage's action, for one node or for the whole run, with its events; keeps its outputs. Never rejects. */
export async function runAction(run: LiveRun, stage: PlannedStage, node?: RunNode): Promise<ActionEnd> {
  if (stage.task.kind !== "action") throw new Error(`stage ${stage.id} has no action`);
  const { action } = stage.task;
  const named = { stage: stage.id, action: action.name, ...omitUndefined({ item: node?.name }) };
  const started = run.deps.now();
  run.deps.emit({ type: "action.started", ...named });
  const end = judgeCheck(stage, await performAction(run, stage, action, node), run.request);
  const { outcome, reason, problem, warning } = end;
  node?.touch(outcome);
  if (warning) run.deps.emit({ type: "warning", ...omitUndefined({ node: node?.name }), text: warning.message });
  run.deps.emit({
    type: "action.finished",
    ...named,
    // An operator's no ends the action without a failure.
    outcome: isDenied(problem) ? "interrupted" : outcome,
    ...omitUndefined({ reason, problem, warning, position: stage.at }),
    duration: run.deps.now() - started,
  });
  return { outcome, ...omitUndefined({ problem }) };
}

type JudgedEnd = ActionEnd & { readonly reason?: string; readonly warning?: Problem };

/**
 * The end of a check: it fails also where the action would change something, or cannot tell in a run that is no dry run. A warning
 * counts as in order.
 */
function judgeCheck({ id, title, at, check }: PlannedStage, end: JudgedEnd, { dryRun }: RunRequest): JudgedEnd {
  const isUntold = end.outcome === "unknown" && !dryRun;
  if (check === undefined || !(isUntold || end.outcome === "failed" || end.outcome === "would-change")) return end;
  const message = isUntold ? `${title}: it cannot be told` : `${title}: it is not as “${id}” would make it`;
  const differs: Problem = { code: "ASSERTION_FAILED", message, ...omitUndefined({ at }) };
  const problem = { ...(end.problem ?? differs), ...omitUndefined({ hint: check.remedy ?? end.problem?.hint }) };
  return check.severity === "warning" ? { outcome: "ok", warning: problem } : { outcome: "failed", problem };
}

/** Whether the action ended because the operator answered no. */
export function isDenied(problem: Problem | undefined): boolean {
  return problem?.code === "CONFIRM_DENIED";
}

async function performAction(run: LiveRun, stage: PlannedStage, action: Action, node?: RunNode): Promise<JudgedEnd> {
  const limit = new AbortController();
  const seconds = stage.timeout ?? DEFAULT_SECONDS;
  const timer = setTimeout(() => limit.abort(), seconds * 1000);
  const signal = AbortSignal.any([run.deps.abort, limit.signal, ...(action.endsAtStop ? [run.deps.stop] : [])]);
  const last = new LastOutput(action.name);
  try {
    const args = await whileOpening(
      (reference, at) => run.deps.readSecret(reference, at).then(secret),
      () => argsOf(run, stage, node),
    );
    const context = contextOf(run, stage, { signal, last }, node);
    const onlyLooks = run.request.dryRun || stage.check !== undefined;
    const result = await orStopped(onlyLooks ? action.plan(args, context) : action.run(args, context), signal);
    return keepResult(run, stage, result, node);
  } catch (error) {
    if (error instanceof UnknownValue) return unknownResult(run, stage, error.unknown, node);
    if (limit.signal.aborted) return { outcome: "failed", problem: actionTimeout(stage, seconds, last, node) };
    if (run.isStopping) return { outcome: "interrupted" };
    if (isBug(error)) run.noteBug();
    return { outcome: "failed", problem: problemOf(error) };
  } finally {
    clearTimeout(timer);
  }
}

function argsOf(run: LiveRun, stage: PlannedStage, node?: RunNode): unknown {
  if (stage.task.kind !== "action") return undefined;
  return stage.task.args(run.scopeOf(node));
}

function keepResult(run: LiveRun, stage: PlannedStage, result: ActionResult | "unknown", node?: RunNode): ActionEnd {
  if (result === "unknown") {
    run.outputs.set(stage.register, node?.name, new Unknown(`stage ${stage.id}`));
    return { outcome: "unknown" };
  }
  run.outputs.set(stage.register, node?.name, result.outputs);
  if (!result.changed) return { outcome: "ok" };
  return { outcome: run.request.dryRun || stage.check ? "would-change" : "changed" };
}

/** An action with an unknown argument: unknown in a dry run; otherwise failed, since the stage that gives the value did not run. */
function unknownResult(run: LiveRun, stage: PlannedStage, { after }: Unknown, node?: RunNode) {
  run.outputs.set(stage.register, node?.name, new Unknown(after));
  if (run.request.dryRun) return { outcome: "unknown", reason: `after ${after}` } as const;
  return { outcome: "failed", problem: outputMissing(stage, after) } as const;
}

function actionTimeout(stage: PlannedStage, seconds: number, last: LastOutput, node?: RunNode): Problem {
  return {
    code: "STAGE_TIMEOUT",
    message: `stage “${stage.id}” took longer than ${seconds} s${node ? ` for “${node.name}”` : ""}`,
    at: stage.at,
    ...last.describe("on the bastion"),
    hint: "give the stage a longer “timeout”, or look at what it waits for",
  };
}

function contextOf(
  run: LiveRun,
  stage: PlannedStage,
  { signal, last }: { readonly signal: AbortSignal; readonly last: LastOutput },
  node?: RunNode,
): ActionContext {
  const { deps, request, plan } = run;
  const emit = (event: RunEventBody): void => {
    last.handle(event);
    deps.emit(event);
  };
  const action = stage.task.kind === "action" ? stage.task.action.name : "";
  const item = node && { item: node.name };
  return {
    runId: deps.runId,
    challenge: challengeOf(deps.nonce),
    dryRun: request.dryRun,
    project: deps.project,
    home: deps.home,
    ...omitUndefined({ context: request.context, node: node?.entry, trust: deps.trust }),
    nodes: plan.roster.nodes,
    targets: plan.nodes,
    ended: new Map([...run.nodes].flatMap(([name, { ended }]) => (ended ? [[name, ended] as const] : []))),
    signal,
    note: (text) => emit({ type: "action.note", stage: stage.id, action, ...item, text }),
    output: (stream, text) =>
      emit({ type: "action.output", stage: stage.id, action, ...item, stream, text: cleanText(text) }),
    ask: (question) => (question.kind === "confirm" && request.yes ? Promise.resolve("yes") : deps.ask(question)),
    passphrase: () => run.secrets.clusterPassphrase(),
    ...omitUndefined({ givenPassphrase: deps.passphrase }),
    warn: (text) => deps.emit({ type: "warning", ...omitUndefined({ node: node?.name }), text }),
  };
}

/** Rejects at the signal even if the action ignores it, so that such an action cannot hold up the run. */
async function orStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const onAbort = (): void =>
    aborted.reject(new KcoreError({ code: "INTERRUPTED", message: "the action was stopped" }));
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort);
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    aborted.promise.catch(() => undefined);
    work.catch(() => undefined);
  }
}
