import type { Outcome } from "#engine/events/event.ts";
import { nodeTime, runTime, type ActionModel, type NodeModel, type RunModel } from "#engine/events/run-model.ts";
import { ownProblems } from "./own-problems.ts";
import { actionsByNode, workOn, type Work } from "./work-item.ts";

/**
 * How the steps of a node, or of a run, ended: the words of every view (docs/reading-a-run.md, “Words”). A node that came
 * to no good end counts once under its word if none of its steps tells it, and so does what stopped the run itself.
 */
export interface Tally {
  /** In order, changed, or in a dry run would change. */
  readonly succeeded: number;
  readonly changed: number;
  readonly wouldChange: number;
  readonly failed: number;
  /** Nodes that could not be reached; they are not among the failed. */
  readonly unreachable: number;
  /** Broken off. */
  readonly interrupted: number;
  /** Begun, and no end of it is known: it goes on, or what told of it died. */
  readonly unfinished: number;
  readonly skipped: number;
  readonly unknown: number;
  /** Nodes on which nothing was done. */
  readonly notStarted: number;
  /** Steps that ran to an end: succeeded, failed or interrupted. */
  readonly run: number;
  /** Milliseconds on the clock; of the bastion what its actions took. */
  readonly time: number;
}

const words = [
  "succeeded",
  "changed",
  "wouldChange",
  "failed",
  "unreachable",
  "interrupted",
  "unfinished",
  "skipped",
  "unknown",
  "notStarted",
  "run",
] as const satisfies readonly Exclude<keyof Tally, "time">[];

/** What a node came to, or the run itself, that none of its steps tells. */
export type OwnEnd = "failed" | "unreachable" | "interrupted" | "unfinished" | "notStarted";

/** Counts steps and actions, and ends that none of them tells. */
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

/** What the node came to, if no step or action of its own tells it. */
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
  const work = workOf(model, node);
  const end = ownEnd(node, work);
  return tallyOf(work, timeOfNode(node, work, model.lastAt) ?? 0, end ? [end] : []);
}

/** The bastion's actions for no single node, and what stopped the run itself. */
export function tallyOfBastion(model: RunModel): Tally {
  const actions = bastionActions(model);
  return tallyOf(actions, busyTime(actions, model.lastAt), ownEnds(model));
}

export function tallyOfRun(model: RunModel): Tally {
  return sumTallies(
    model,
    [...model.nodes.values()].map((node) => tallyOfNode(model, node)),
  );
}

/** The run's tally from those of all its nodes, where they are known. */
export function sumTallies(model: RunModel, ofNodes: readonly Tally[]): Tally {
  const sum = { ...tallyOfBastion(model), time: runTime(model) };
  for (const tally of ofNodes) for (const word of words) sum[word] += tally[word];
  return sum;
}

/** Milliseconds that the node took by `now`; of one that nobody connected to, what was done for it on the bastion. */
export function timeOfNode(node: NodeModel, work: readonly Work[], now: number): number | undefined {
  return nodeTime(node, now) ?? (work.length === 0 ? undefined : busyTime(work, now));
}

/** All actions of a run on the bastion that concern no single node. */
export function bastionActions(model: RunModel): readonly ActionModel[] {
  return actionsByNode(model).get("") ?? [];
}

/** Milliseconds that these actions took, or have taken by `now`. */
export function busyTime(actions: readonly Pick<Work, "startedAt" | "duration" | "outcome">[], now: number): number {
  const timeOf = ({ outcome, startedAt, duration = 0 }: (typeof actions)[number]) =>
    outcome === undefined ? Math.max(0, now - startedAt) : duration;
  return actions.reduce((sum, action) => sum + timeOf(action), 0);
}

/** The steps of a node and the actions taken for it, in the order in which they began. */
function workOf(model: RunModel, node: NodeModel): readonly Work[] {
  return workOn(node, actionsByNode(model).get(node.name) ?? []);
}

/** Why the run itself could not go on is a failure, unless somebody stopped it. */
function ownEnds(model: RunModel): readonly OwnEnd[] {
  return ownProblems(model).map(() => (model.outcome === "interrupted" ? "interrupted" : "failed"));
}
