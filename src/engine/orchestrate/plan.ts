import type { SourcePosition } from "#errors/problem.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import type { StageOutline } from "#engine/events/event.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { KeptSteps } from "./kept-steps.ts";
import type { Action } from "./action.ts";

/** How the nodes of a stage go through it. Absent values: all at once, as many as the run allows, no limit. */
export interface Pace {
  /** So many nodes, then a barrier, then the next ones. */
  readonly batch?: number;
  /** At most so many nodes at a time. */
  readonly concurrency?: number;
  /** One failed or unreachable node more than this, and no further node or stage starts. */
  readonly maxFailures?: number;
  /** At most so many nodes at a time, less those of the run that failed or are unreachable; one at least. */
  readonly maxUnavailable?: number;
}

/** What the expressions of a stage see beyond what is fixed for the whole run. */
export interface StageScope {
  readonly node?: NodeEntry;
  /** The root `stages`; what no stage gave yet is an `Unknown` of source/unknown. */
  readonly stages: Readonly<Record<string, unknown>>;
  /** The stages whose values nodes tell. */
  readonly told?: ReadonlySet<string>;
  /** The value that a stage gave on another node. */
  readonly on?: (name: string, node: string) => unknown;
}

export type StageTask =
  /** The steps of the scope's node. @throws KcoreError with every problem of the states for this node. */
  | {
      readonly kind: "apply";
      readonly expand: (scope: StageScope) => Promise<readonly UnresolvedStep[]>;
      /** Of what the stage rests on, what the states of the scope's node take; absent: all of it. */
      readonly rests?: (scope: StageScope) => ReadonlySet<string>;
      /** By node, once it is drafted, the names of its states if they get no parameters. Absent: it has no states. */
      readonly plain?: ReadonlyMap<string, string>;
    }
  /** @throws KcoreError when the arguments do not fit; UnknownValue when they rest on what is not known yet. */
  | { readonly kind: "action"; readonly action: Action; readonly args: (scope: StageScope) => unknown }
  /** Only the session's own look at the node: `kcore ping`, `kcore facts`. */
  | { readonly kind: "look" };

/** One stage of a run, ready to be carried out; an orchestration with waves has one for each wave. */
export interface PlannedStage {
  /** Unique in the run: the stage's id, from the second wave on with `@2`, `@3` … */
  readonly id: string;
  /** `stages.NAME` gives what it registered. */
  readonly register: string;
  readonly title: string;
  readonly at?: SourcePosition;
  /** In the order in which they start; absent: an action that concerns no single node, a barrier for all. */
  readonly nodes?: readonly string[];
  readonly pace: Pace;
  /** Its nodes are connected to anew before it. */
  readonly reconnect?: true;
  /** Seconds. */
  readonly timeout?: number;
  /** Left out for this reason. */
  readonly skip?: string;
  /** Registered names of earlier stages that `when` and `with` rest on. */
  readonly rests: ReadonlySet<string>;
  /** By name of `rests`, the nodes whose values the stage takes (`stages.NAME.NODE`); "" is the stage's own node. */
  readonly others?: ReadonlyMap<string, ReadonlySet<string>>;
  /** @throws UnknownValue when it rests on what is not known yet; KcoreError when it is no boolean. */
  readonly when?: (scope: StageScope) => boolean;
  /** `when` as the operator wrote it. */
  readonly condition?: string;
  readonly task: StageTask;
  /** What follows when this stage failed: for the failed node, or once if this stage concerns no single node. */
  readonly onFailure: readonly PlannedStage[];
}

/** A run with everything checked, before anything was touched. */
export interface RunPlan {
  readonly title: string;
  readonly roster: Roster;
  /** Names of all nodes that it concerns, in the roster's order. */
  readonly nodes: readonly string[];
  readonly stages: readonly PlannedStage[];
  /** What follows, once, when the run failed. */
  readonly onFailure?: readonly PlannedStage[];
  /** Said in the record before the first stage. */
  readonly warnings: readonly string[];
  /** How many steps each stage has on each of its nodes, as far as that is known before the run. */
  readonly planned?: ReadonlyMap<PlannedStage, Pick<StageOutline, "planned" | "open">>;
  /** What was drafted already when the plan was checked. */
  readonly keptSteps?: KeptSteps;
}

/** A part of a run: an action that all wait for, or adjacent stages that each node walks through on its own. */
export type Part =
  | { readonly kind: "barrier"; readonly stage: PlannedStage }
  | {
      readonly kind: "block";
      readonly batches: readonly (readonly string[])[];
      readonly pace: Pace;
      readonly stages: readonly PlannedStage[];
    };

/** Joins adjacent stages over the same nodes with the same pace into blocks; keeps the order. */
export function arrange(stages: readonly PlannedStage[]): readonly Part[] {
  const groups: PlannedStage[][] = [];
  for (const stage of stages) {
    const group = groups.at(-1);
    // A stage that takes another node's value waits until all nodes have passed the stage that gives the value.
    const takes = group?.some(({ register }) => stage.others?.has(register)) === true;
    if (group?.[0] !== undefined && !takes && belongTogether(group[0], stage)) group.push(stage);
    else groups.push([stage]);
  }
  return groups.map((group) => partOf(group as [PlannedStage, ...PlannedStage[]]));
}

function partOf(group: readonly [PlannedStage, ...PlannedStage[]]): Part {
  const [{ nodes, pace }] = group;
  if (nodes === undefined) return { kind: "barrier", stage: group[0] };
  return { kind: "block", batches: batchesOf(nodes, pace.batch), pace, stages: group };
}

function belongTogether(first: PlannedStage, next: PlannedStage): boolean {
  return (
    first.nodes !== undefined &&
    next.nodes !== undefined &&
    first.nodes.length === next.nodes.length &&
    first.nodes.every((node, index) => node === next.nodes?.[index]) &&
    first.pace.batch === next.pace.batch &&
    first.pace.concurrency === next.pace.concurrency &&
    first.pace.maxFailures === next.pace.maxFailures &&
    first.pace.maxUnavailable === next.pace.maxUnavailable
  );
}

/** The nodes in groups of `size`, in order; one group when no size is given. */
export function batchesOf(nodes: readonly string[], size = nodes.length): readonly (readonly string[])[] {
  const step = Math.max(1, size);
  return Array.from({ length: Math.ceil(nodes.length / step) }, (_, index) =>
    nodes.slice(index * step, (index + 1) * step),
  );
}

/** For each node the index of the last part that concerns it: after that part its session may end. */
export function lastParts(parts: readonly Part[]): ReadonlyMap<string, number> {
  return new Map(
    parts.flatMap((part, index) =>
      part.kind === "block" ? part.batches.flat().map((node) => [node, index] as const) : [],
    ),
  );
}

/** A number of nodes out of `total`: `3`, or a share such as `25%`, rounded down. */
export function shareOf(limit: number | string, total: number): number {
  return typeof limit === "number" ? limit : Math.floor((Number.parseFloat(limit) / 100) * total);
}

/** Which nodes a wave takes. */
export interface Wave {
  readonly nodes: readonly string[];
  readonly batch?: number | string;
}

/**
 * Splits nodes into waves: each wave takes what it matched and no earlier one took, in groups of its `batch`.
 * Gives the nodes that no wave took as `left`.
 */
export function wavesOf(
  nodes: readonly string[],
  waves: readonly Wave[],
): { readonly waves: readonly (readonly string[])[]; readonly left: readonly string[] } {
  let left = nodes;
  const taken = waves.flatMap(({ nodes: matched, batch }) => {
    const mine = left.filter((node) => matched.includes(node));
    left = left.filter((node) => !mine.includes(node));
    return batchesOf(mine, batch === undefined ? undefined : shareOf(batch, mine.length));
  });
  return { waves: taken, left };
}

/** The names that stages register; whether each has one value per node, and whether nodes tell the value. */
export type RegisteredNames = ReadonlyMap<string, { readonly perNode: boolean; readonly told: boolean }>;

export function registeredNames(stages: readonly PlannedStage[]): RegisteredNames {
  const all = stages.flatMap((stage) => [stage, ...stage.onFailure]);
  return new Map(
    all.map(({ register, nodes, task }) => [register, { perNode: nodes !== undefined, told: task.kind !== "action" }]),
  );
}
