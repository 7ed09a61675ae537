import type { Attendance, HookAnswer, NodePhase, Owner, Progress, Report, Row, Wish } from "./records.ts";
import type { UpdateSpec } from "./spec.ts";

/** A node of the cluster, as who decides knows it at the moment. */
export interface RolloutNode {
  readonly id: string;
  readonly hostname: string;
  readonly dc: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly isController: boolean;
  readonly isApproved: boolean;
  readonly isReady: boolean;
  /** Why it is not ready. */
  readonly reason?: string;
  /** What it registered with. */
  readonly version: string;
  /** Seconds for which an order has waited for the node's updater, if for long. */
  readonly orderUntaken?: number;
  /** For controllers: why its replication is not healthy, if it is not. */
  readonly replication?: string;
}

/** All that a decision rests on. */
export interface RolloutView {
  readonly name: string;
  readonly generation: number;
  readonly spec: UpdateSpec;
  /** What a node that is done runs, and its version (targetIdOf). */
  readonly target: { readonly id: string; readonly version: string };
  /** Who decides. */
  readonly self: string;
  readonly owner: Owner;
  /** Somebody approved the plan as it is now. */
  readonly isApproved: boolean;
  readonly progress: Progress | undefined;
  readonly rows: ReadonlyMap<string, Row>;
  readonly reports: ReadonlyMap<string, Report>;
  /** By node and hook (hookKey). */
  readonly answers: ReadonlyMap<string, HookAnswer>;
  readonly attendance?: Attendance;
  readonly wishes: { readonly cancel?: Wish; readonly rollback?: Wish; readonly promote?: Wish };
  readonly nodes: ReadonlyMap<string, RolloutNode>;
  /** Ms since 1970. */
  readonly now: number;
  /** Another update that is not over, and has nodes of this one: it is waited for before this one begins. */
  readonly other?: string;
}

/** Nothing of the node is under way any more, as far as its row says. */
const atRest: ReadonlySet<NodePhase> = new Set(["succeeded", "failed", "rolled_back", "cancelled"]);

export function isAtRest({ phase }: Pick<Row, "phase">): boolean {
  return atRest.has(phase);
}

/** Nothing of it was left on the node, as far as its row says. */
export function isBack({ phase }: Pick<Row, "phase">): boolean {
  return phase === "cancelled" || phase === "rolled_back";
}

/** Something of the node is, or may be, under way: it is not known to be at rest. */
export function isActive(row: Pick<Row, "phase">): boolean {
  return row.phase !== "pending" && !isAtRest(row);
}

/** What can still be called off: nothing of the node was brought into use. */
const openPhases: ReadonlySet<NodePhase> = new Set(["pending", "preparing", "prepared", "draining"]);

export function isOpen({ phase }: Pick<Row, "phase">): boolean {
  return openPhases.has(phase);
}

/** Nothing of what runs on the node was touched. */
const untouchedPhases: ReadonlySet<NodePhase> = new Set(["pending", "preflight", "preparing", "prepared"]);

/** Of a node that was removed from the cluster before it was touched, a rollout would wait for what does not come. */
export function isLeftOut({ nodes }: RolloutView, id: string, { phase }: Pick<Row, "phase">): boolean {
  return !nodes.has(id) && untouchedPhases.has(phase);
}

/** The node's last word, if it knows whose it is: it is about this owner and this generation. */
export function reportOf({ name, owner, generation, reports }: RolloutView, id: string): Report | undefined {
  const report = reports.get(id);
  if (!report) return undefined;
  const { fence } = report;
  const isOurs = fence.name === name && fence.epoch === owner.epoch && fence.owner === owner.owner;
  return isOurs && fence.generation === generation ? report : undefined;
}

/** Another owner of this epoch, or of a later one, that the node obeys: two takeovers at once, or a run over SSH, come to that. */
export function otherOwnerOf({ name, owner, reports }: RolloutView, id: string): string | undefined {
  const fence = reports.get(id)?.fence;
  if (fence?.name !== name || fence.owner === owner.owner || fence.epoch < owner.epoch) return undefined;
  return fence.owner;
}

/** Somebody asked for it, of this generation. */
export function isWished({ wishes, generation }: RolloutView, action: keyof RolloutView["wishes"]): boolean {
  return wishes[action]?.generation === generation;
}

/** What was brought is to go, whatever it is. */
export function isGoingBack(view: RolloutView): boolean {
  return view.progress?.phase === "rolling_back" || isWished(view, "rollback");
}

export function nameOf({ nodes }: RolloutView, id: string): string {
  return nodes.get(id)?.hostname ?? id;
}

export function hookKey(node: string, hook: string): string {
  return `${node}/${hook}`;
}
