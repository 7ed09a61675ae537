import type { Outcome } from "#engine/events/event.ts";
import { nodeTime, runTime, type NodeModel, type RunModel } from "#engine/events/run-model.ts";
import type { Problem } from "#errors/problem.ts";
import { actionsByNode, bastionActions, workOn, type Work } from "./work-item.ts";

/**
 * The ends of the steps of a node, or of a run, in the words of every view (docs/reading-a-run.md, “Words”). A node
 * whose end no step reports counts once under its own end. So does a problem that stopped the run itself.
 */
export interface Tally {
  /** In order, changed, or in a dry run would change. */
  readonly succeeded: number;
  readonly changed: number;
  readonly wouldChange: number;
  readonly failed: number;
  /** Nodes that could not be reached; they are not among the failed. */
  readonly unreachable: number;
  /** Steps and actions that were interrupted, and nodes whose interruption no step reports. */
  readonly interrupted: number;
  /** Work that began and has no known end: it runs, or the run's process died. */
  readonly unfinished: number;
  readonly skipped: number;
  readonly unknown: number;
  /** Nodes on which nothing was done. */
  readonly notStarted: number;
  /** Steps that ran to an end: succeeded, failed or interrupted. */
  readonly run: number;
  /** Elapsed milliseconds; for the bastion the time of its actions. */
  readonly time: number;
}

/** The end of a node, or of the run itself, that no step reports. */
export type OwnEnd = "failed" | "unreachable" | "interrupted" | "unfinished" | "notStarted";

/** Counts steps and actions, and ends that no step reports. */
export function tallyOf(work: Iterable<Pick<Work, "outcome">>, time: number, ends: readonly OwnEnd[] = []): Tally {
  const counts: Record<Outcome | "unfinished", number> = {
    ok: 0,
    changed: 0,
    "would-change": 0,
    failed: 0,
    skipped: 0,
    unknown: 0,
    interrupted: 0,
    unfinished: 0,
  };
  for (const { outcome } of work) counts[outcome ?? "unfinished"] += 1;
  const own = { failed: 0, unreachable: 0, interrupted: 0, unfinished: 0, notStarted: 0 };
  for (const end of ends) own[end] += 1;
  const succeeded = counts.ok + counts.changed + counts["would-change"];
  return {
    succeeded,
    changed: counts.changed,
    wouldChange: counts["would-change"],
    failed: counts.failed + own.failed,
    unreachable: own.unreachable,
    interrupted: counts.interrupted + own.interrupted,
    unfinished: counts.unfinished + own.unfinished,
    skipped: counts.skipped,
    unknown: counts.unknown,
    notStarted: own.notStarted,
    run: succeeded + counts.failed + counts.interrupted,
    time,
  };
}

/** The end of a node, if no step or action of its own reports it. */
export function ownEnd({ outcome, startedAt, ranBefore }: NodeModel, work: readonly Work[]): OwnEnd | undefined {
  const has = (wanted: Outcome | undefined) => work.some((one) => one.outcome === wanted);
  switch (outcome) {
    case "done":
      return undefined;
    case "unreachable":
      return "unreachable";
    case "not-started":
      return "notStarted";
    case "failed":
      return has("failed") ? undefined : "failed";
    case "interrupted":
      return has("interrupted") || has("failed") ? undefined : "interrupted";
    case undefined:
      break;
  }
  if (has(undefined) || has("failed") || has("interrupted")) return undefined;
  return startedAt === undefined && ranBefore === undefined && work.length === 0 ? "notStarted" : "unfinished";
}

export function tallyOfNode(model: RunModel, node: NodeModel): Tally {
  const work = workOn(node, actionsByNode(model).get(node.name) ?? []);
  const end = ownEnd(node, work);
  return tallyOf(work, timeOfNode(node, work, model.lastAt) ?? 0, end ? [end] : []);
}

/** The bastion's actions for no single node, and the problems that stopped the run itself. */
export function tallyOfBastion(model: RunModel): Tally {
  const actions = bastionActions(model);
  // A problem that stopped the run is a failure, unless an operator stopped the run.
  const end = model.outcome === "interrupted" ? "interrupted" : "failed";
  return tallyOf(
    actions,
    busyTime(actions, model.lastAt),
    ownProblems(model).map(() => end),
  );
}

/** The run's tally. `ofNodes`: the tallies of its nodes, if the caller has them already. */
export function tallyOfRun(
  model: RunModel,
  ofNodes: readonly Tally[] = [...model.nodes.values()].map((node) => tallyOfNode(model, node)),
): Tally {
  const { time: _, ...sum } = tallyOfBastion(model);
  const words = Object.keys(sum) as (keyof typeof sum)[];
  const counts: Record<keyof typeof sum, number> = { ...sum };
  for (const tally of ofNodes) for (const word of words) counts[word] += tally[word];
  return { ...counts, time: runTime(model) };
}

/**
 * Milliseconds that the node took by `now`; for a node without a connection, the time of the bastion's actions for it. Undefined
 * for a node without both.
 */
export function timeOfNode(node: NodeModel, work: readonly Work[], now: number): number | undefined {
  return nodeTime(node, now) ?? (work.length === 0 ? undefined : busyTime(work, now));
}

/** The sum of milliseconds that this work took, or has taken by `now`. */
export function busyTime(actions: readonly Pick<Work, "startedAt" | "duration" | "outcome">[], now: number): number {
  const timeOf = ({ outcome, startedAt, duration = 0 }: (typeof actions)[number]) =>
    outcome === undefined ? Math.max(0, now - startedAt) : duration;
  return actions.reduce((sum, action) => sum + timeOf(action), 0);
}

/** Problems of the run itself, without those that a node, a step or an action has reported already. */
export function ownProblems(model: RunModel): readonly Problem[] {
  if (model.problems.length === 0) return [];
  const nodes = [...model.nodes.values()];
  const work = [...nodes, ...nodes.flatMap(({ steps }) => steps), ...model.stages.flatMap(({ actions }) => actions)];
  return model.problems.filter(
    ({ code, message }) => !work.some(({ problem }) => problem?.code === code && problem.message === message),
  );
}
