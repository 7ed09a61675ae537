import type {
  Attendance,
  HookAnswer,
  NodeAssignment,
  NodePhase,
  Owner,
  RolloutProgress,
  Report,
  OperatorRequest,
} from "./records.ts";
import type { UpdateSpec } from "./spec.ts";

/** A node of the cluster, as the controller that decides knows it at the moment. */
export interface RolloutNode {
  readonly id: string;
  readonly hostname: string;
  readonly dc: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly isController: boolean;
  readonly isApproved: boolean;
  readonly isReady: boolean;
  /** The reason why the node is not ready. */
  readonly reason?: string;
  /** The version that the node registered with. */
  readonly version: string;
  /** Seconds for which an order has waited for the node's updater, if for long. */
  readonly orderUntaken?: number;
  /** For controllers: why the node's replication is not healthy, if so. */
  readonly replication?: string;
}

/** All facts for a decision about an update. */
export interface RolloutInput {
  readonly name: string;
  readonly generation: number;
  readonly spec: UpdateSpec;
  /** The version that an updated node reports: its id (targetIdOf), and its name for people. */
  readonly target: { readonly id: string; readonly version: string };
  /** The controller that decides. */
  readonly self: string;
  readonly owner: Owner;
  /** Whether an operator approved the present plan. */
  readonly isApproved: boolean;
  readonly progress: RolloutProgress | undefined;
  readonly rows: ReadonlyMap<string, NodeAssignment>;
  readonly reports: ReadonlyMap<string, Report>;
  /** By node and hook (hookKey). */
  readonly answers: ReadonlyMap<string, HookAnswer>;
  readonly attendance?: Attendance | undefined;
  readonly requests: {
    readonly cancel?: OperatorRequest;
    readonly rollback?: OperatorRequest;
    readonly promote?: OperatorRequest;
  };
  readonly nodes: ReadonlyMap<string, RolloutNode>;
  /** Ms since 1970. */
  readonly now: number;
  /** An update under way that shares nodes with this one, which has to wait for it. */
  readonly other?: string;
}

/** A rollout that has begun: its input, with the present generation's progress and rows. */
export interface Rollout {
  readonly input: RolloutInput;
  readonly progress: RolloutProgress;
  readonly rows: ReadonlyMap<string, NodeAssignment>;
}

/** The records that the owner writes next; empty when it has to wait. */
export interface Decision {
  readonly progress?: RolloutProgress;
  readonly rows: ReadonlyMap<string, NodeAssignment>;
}

/** Phases after a node's last order; its undrain hook may still be due. */
const restPhases: ReadonlySet<NodePhase> = new Set(["succeeded", "failed", "rolled_back", "cancelled"]);

export function isAtRest({ phase }: Pick<NodeAssignment, "phase">): boolean {
  return restPhases.has(phase);
}

/** Whether the node has nothing of the update, by its assignment. */
export function isBack({ phase }: Pick<NodeAssignment, "phase">): boolean {
  return phase === "cancelled" || phase === "rolled_back";
}

/** Whether work is, or may be, under way on the node. */
export function isActive(row: Pick<NodeAssignment, "phase">): boolean {
  return row.phase !== "pending" && !isAtRest(row);
}

const untouchedPhases: ReadonlySet<NodePhase> = new Set(["pending", "preflight", "preparing", "prepared"]);

/** Whether the node was removed from the cluster before it was touched: a rollout would wait for it in vain. */
export function isLeftOut({ nodes }: RolloutInput, id: string, { phase }: Pick<NodeAssignment, "phase">): boolean {
  return !nodes.has(id) && untouchedPhases.has(phase);
}

/** The node's last report, if it names this owner and this generation. */
export function reportOf({ name, owner, generation, reports }: RolloutInput, id: string): Report | undefined {
  const report = reports.get(id);
  if (!report) return undefined;
  const { fence } = report;
  const isOfPresentOwner = fence.name === name && fence.epoch === owner.epoch && fence.owner === owner.owner;
  return isOfPresentOwner && fence.generation === generation ? report : undefined;
}

/** The other owner, of this epoch or a later one, that the node obeys: after two takeovers at once, or a run over SSH. */
export function otherOwnerOf({ name, owner, reports }: RolloutInput, id: string): string | undefined {
  const fence = reports.get(id)?.fence;
  if (fence?.name !== name || fence.owner === owner.owner || fence.epoch < owner.epoch) return undefined;
  return fence.owner;
}

/** Why a node is not ready, worded to follow its name; undefined if it is ready. */
export function notReadyReason({ nodes }: Pick<RolloutInput, "nodes">, id: string): string | undefined {
  const node = nodes.get(id);
  if (!node) return "is no node of this cluster any more";
  if (!node.isApproved) return "is not approved";
  return node.isReady ? undefined : `is not ready: ${node.reason ?? "no heartbeat"}`;
}

/** Why an updated node does not count as done: not ready, another version, or replication that is not healthy. */
export function notUpdatedReason(input: Pick<RolloutInput, "nodes" | "target">, id: string): string | undefined {
  const { nodes, target } = input;
  const notReady = notReadyReason(input, id);
  if (notReady !== undefined) return `it ${notReady}`;
  const { version, replication } = nodes.get(id) ?? {};
  if (target.version !== "" && version !== target.version)
    return `it says that it runs ${version}, not ${target.version}`;
  return replication && `its replication is not healthy: ${replication}`;
}

/** Whether an operator requested this action for this generation. */
export function isRequested({ requests, generation }: RolloutInput, action: keyof RolloutInput["requests"]): boolean {
  return requests[action]?.generation === generation;
}

/** Whether the update is being rolled back, or an operator has requested that. */
export function isGoingBack(input: RolloutInput): boolean {
  return input.progress?.phase === "rolling_back" || isRequested(input, "rollback");
}

export function hostnameIn({ nodes }: RolloutInput, id: string): string {
  return nodes.get(id)?.hostname ?? id;
}

export function hookKey(node: string, hook: string): string {
  return `${node}/${hook}`;
}
