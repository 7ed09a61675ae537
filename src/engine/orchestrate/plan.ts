import type { SourcePosition } from "#errors/problem.ts";
import type { NodeEntry, Roster } from "#engine/roster/roster.ts";
import type { LeftOut, StageOutline } from "#engine/events/event.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import type { StageCheck } from "./stage-source.ts";
import type { StepCache } from "./step-cache.ts";
import type { Action } from "./action.ts";

/** The limits for the nodes of a stage. Absent values: no batches, as many nodes at a time as the run allows, no limit. */
export interface Pace {
  /** The number of nodes that go through the stages before the next nodes start. */
  readonly batch?: number;
  /** The most nodes at a time. */
  readonly concurrency?: number;
  /** With more failed or unreachable nodes than this, no further node or stage starts. */
  readonly maxFailures?: number;
  /** The most nodes at a time, less the run's failed or unreachable nodes; one at least. */
  readonly maxUnavailable?: number;
}

/** The values for a stage's expressions that are not the same for the whole run. */
export interface StageScope {
  readonly node?: NodeEntry;
  /** The root `stages`; the value of a stage that has not ended is an `Unknown`. */
  readonly stages: Readonly<Record<string, unknown>>;
  /** The stages whose values are answers of nodes. */
  readonly untrusted?: ReadonlySet<string>;
  /** The value that a stage gave on another node. */
  readonly valueOn?: (name: string, node: string) => unknown;
  /** The values that a stage gave, by node name. */
  readonly valuesOf?: (name: string) => unknown;
}

export type StageTask =
  /** `expand` gives the steps of the scope's node. @throws KcoreError with every problem of the states for this node. */
  | {
      readonly kind: "apply";
      readonly expand: (scope: StageScope) => Promise<readonly UnresolvedStep[]>;
      /** The part of the stage's `dependencies` that the states of the scope's node use; absent: all of it. */
      readonly dependencies?: (scope: StageScope) => ReadonlySet<string>;
      /** By expanded node, the names of its states if they get no parameters. Absent: the task is a command. */
      readonly plain?: ReadonlyMap<string, string>;
    }
  /** @throws KcoreError if the arguments are invalid; UnknownValue if they depend on a value that is not known yet. */
  | { readonly kind: "action"; readonly action: Action; readonly args: (scope: StageScope) => unknown }
  /** No steps, only the connection and the node's facts or lock: `kcore ping`, `kcore facts`, `kcore node unlock`. */
  | { readonly kind: "look" };

/** In `others`, and as `stages.NAME.nodes`: the values of all nodes. */
export const ALL_NODES = "nodes";

/** A stage as its file names it; `order`: its place among the stages, -1 for a stage of `onFailure`. */
export interface StageName {
  readonly id: string;
  readonly order: number;
  readonly tags: readonly string[];
}

/** One stage of a run, bound to its nodes and values; with waves there is one for each wave. */
export interface PlannedStage {
  /** Unique in the run: the stage's id, from the second wave on with `@2`, `@3` … */
  readonly id: string;
  readonly source: StageName;
  /** The name NAME of `stages.NAME`, the stage's outputs. */
  readonly register: string;
  readonly title: string;
  readonly at?: SourcePosition;
  /** In the order in which they start; absent: an action for the whole run, a barrier for all nodes. */
  readonly nodes?: readonly string[];
  readonly pace: Pace;
  /** The stage begins with a new connection to each node. */
  readonly reconnect?: true;
  /** Seconds. */
  readonly timeout?: number;
  /** The stage's action is a check. */
  readonly check?: StageCheck;
  /** The reason for which the stage is left out. */
  readonly skip?: string;
  /** Registered names of earlier stages that `when` and the arguments use. */
  readonly dependencies: ReadonlySet<string>;
  /** By name of `dependencies`, the nodes whose values the stage uses (`stages.NAME.NODE`), or ALL_NODES; "" is its own node. */
  readonly others?: ReadonlyMap<string, ReadonlySet<string>>;
  /** @throws UnknownValue if it depends on a value that is not known yet; KcoreError if it is no boolean. */
  readonly when?: (scope: StageScope) => boolean;
  /** `when` as the operator wrote it. */
  readonly condition?: string;
  readonly task: StageTask;
  /** The stages that follow a failure of this one: for the failed node, or once if this stage has no nodes. */
  readonly onFailure: readonly PlannedStage[];
}

/** A run with all its input checked, before the first connection. */
export interface RunPlan {
  readonly title: string;
  readonly roster: Roster;
  /** Names of all nodes of the stages, in the roster's order. */
  readonly nodes: readonly string[];
  readonly stages: readonly PlannedStage[];
  /** The stages that follow, once, a failure of the run. */
  readonly onFailure?: readonly PlannedStage[];
  readonly leftOut?: LeftOut;
  /** Recorded before the first stage. */
  readonly warnings: readonly string[];
  /** The number of steps of each stage on each of its nodes, as far as known before the run. */
  readonly planned?: ReadonlyMap<PlannedStage, Pick<StageOutline, "planned" | "open">>;
  /** The steps that the check of the plan expanded. */
  readonly stepCache?: StepCache;
}

/** Adjacent stages that each node goes through at its own pace, batch after batch. */
export interface StageBlock {
  readonly kind: "block";
  readonly batches: readonly (readonly string[])[];
  readonly pace: Pace;
  readonly stages: readonly PlannedStage[];
}

/** A section of a run: an action that all nodes wait for, or a block of stages. */
export type RunSection = { readonly kind: "barrier"; readonly stage: PlannedStage } | StageBlock;

/** Joins adjacent stages over the same nodes with the same pace into blocks, in the stages' order. */
export function runSections(stages: readonly PlannedStage[]): readonly RunSection[] {
  const groups: PlannedStage[][] = [];
  for (const stage of stages) {
    const group = groups.at(-1);
    // A stage that takes another node's value waits until all nodes have passed the stage that gives the value.
    const takes = group?.some(({ register }) => stage.others?.has(register)) === true;
    if (group?.[0] !== undefined && !takes && belongTogether(group[0], stage)) group.push(stage);
    else groups.push([stage]);
  }
  return groups.map((group) => sectionOf(group as [PlannedStage, ...PlannedStage[]]));
}

function sectionOf(group: readonly [PlannedStage, ...PlannedStage[]]): RunSection {
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

/** The nodes in groups of `size`, in order; without a size, one group. */
export function batchesOf(nodes: readonly string[], size = nodes.length): readonly (readonly string[])[] {
  const step = Math.max(1, size);
  return Array.from({ length: Math.ceil(nodes.length / step) }, (_, index) =>
    nodes.slice(index * step, (index + 1) * step),
  );
}

/** For each node the index of its last section, after which its session may end. */
export function lastSections(sections: readonly RunSection[]): ReadonlyMap<string, number> {
  return new Map(
    sections.flatMap((section, index) =>
      section.kind === "block" ? section.batches.flat().map((node) => [node, index] as const) : [],
    ),
  );
}

/** A number of nodes out of `total`: `3`, or a share such as `25%`, rounded down. */
export function shareOf(limit: number | string, total: number): number {
  return typeof limit === "number" ? limit : Math.floor((Number.parseFloat(limit) / 100) * total);
}

/**
 * Splits nodes into waves: each wave takes the nodes that it matched and no earlier wave took, in groups of its `batch`.
 * `unclaimed`: the nodes that no wave took.
 */
export function wavesOf(
  nodes: readonly string[],
  waves: readonly { readonly nodes: readonly string[]; readonly batch?: number | string }[],
): { readonly waves: readonly (readonly string[])[]; readonly unclaimed: readonly string[] } {
  let unclaimed = nodes;
  const groups = waves.flatMap(({ nodes: matched, batch }) => {
    const claimed = unclaimed.filter((node) => matched.includes(node));
    unclaimed = unclaimed.filter((node) => !claimed.includes(node));
    return batchesOf(claimed, batch === undefined ? undefined : shareOf(batch, claimed.length));
  });
  return { waves: groups, unclaimed };
}

/** The names that stages register. `perNode`: the name has one value per node. `untrusted`: the value is a node's answer. */
export type RegisteredNames = ReadonlyMap<string, { readonly perNode: boolean; readonly untrusted: boolean }>;

export function registeredNames(stages: readonly PlannedStage[]): RegisteredNames {
  const all = stages.flatMap((stage) => [stage, ...stage.onFailure]);
  return new Map(
    all.map(({ register, nodes, task }) => [
      register,
      { perNode: nodes !== undefined, untrusted: task.kind !== "action" },
    ]),
  );
}
