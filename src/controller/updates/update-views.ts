import type { AnswerOf } from "#api/methods.ts";
import type { NodeUpdateView, UpdateSummary } from "#api/update-schemas.ts";
import { defined } from "#optional/defined.ts";
import { lookAtHooks } from "#rollout/hooks.ts";
import { reasonOf } from "#rollout/hooks.ts";
import { hasEnded, type Progress, type NodeAssignment } from "#rollout/records.ts";
import { selectNodes, wavesOf } from "#rollout/selection.ts";
import { isLeftOut, type RolloutInput } from "#rollout/rollout-input.ts";
import { presentHash, viewOf, type OwnerLoopParts } from "./owner-loop.ts";
import { knowNodes, type KnownNode } from "./rollout-nodes.ts";
import { nextEpoch, preparedOf, type UpdateRecords } from "./update-records.ts";

export interface ViewParts extends OwnerLoopParts {
  /** Whether another controller is connected. */
  readonly isHeard: (controller: string) => boolean;
  readonly endpointOf: (controller: string) => string | undefined;
}

/** One update as an operator sees it: how it stands, with a line for each node. */
export function viewUpdate(parts: ViewParts, update: UpdateRecords): AnswerOf<"getUpdate"> {
  const nodes = knowNodes(parts);
  const view = viewOf(update, nodes, parts, parts.clock());
  const waves = wavesNow(view, nodes);
  const { statement, approved } = update;
  const nodeStatus = waves.flatMap((wave, index) => wave.map((id) => viewNode(update, view, nodes, id, index + 1)));
  return {
    ...summarize(parts, update, view, waves.flat()),
    hash: presentHash(update, nodes),
    ...(view.isApproved && approved ? { approvedBy: approved.by } : {}),
    spec: statement.spec,
    ...defined({ bundle: statement.bundle }),
    signed: update.head.value.signed,
    takeover: { id: parts.controllerId, epoch: nextEpoch(update) },
    waves: waves.map((wave) => [...wave]),
    nodeStatus,
  };
}

export function summarizeUpdate(
  parts: ViewParts,
  update: UpdateRecords,
  nodes: ReadonlyMap<string, KnownNode>,
): UpdateSummary {
  const view = viewOf(update, nodes, parts, parts.clock());
  return summarize(parts, update, view, wavesNow(view, nodes).flat());
}

/** The groups that are frozen, or those that it would begin with now. */
function wavesNow(view: RolloutInput, nodes: ReadonlyMap<string, KnownNode>): readonly (readonly string[])[] {
  const progress = progressOf(view);
  if (progress && progress.waves.length > 0) return progress.waves;
  return wavesOf(selectNodes(nodes.values(), view.spec.selector), view.spec, view.owner.owner).waves;
}

function progressOf({ progress, generation }: RolloutInput): Progress | undefined {
  return progress?.generation === generation ? progress : undefined;
}

function summarize(
  { isHeard, endpointOf, controllerId }: ViewParts,
  update: UpdateRecords,
  view: RolloutInput,
  ids: readonly string[],
): UpdateSummary {
  const { name, head, statement, owner } = update;
  const progress = progressOf(view);
  const phases = ids.map((id) => rowOf(view, id)?.phase);
  const isOwn = owner.owner === controllerId;
  return {
    name,
    generation: head.value.generation,
    phase: progress?.phase ?? "pending",
    approvalStatus: isAwaiting(view, progress) ? "awaiting_approval" : "approved",
    approvalPolicy: statement.spec.approvalPolicy,
    target: titleOf(statement),
    strategy: statement.spec.strategy.type,
    nodes: ids.length,
    done: phases.filter((phase) => phase === "succeeded").length,
    failed: phases.filter((phase) => phase === "failed").length,
    owner: {
      id: owner.owner,
      epoch: owner.epoch,
      ...defined({ endpoint: endpointOf(owner.owner) }),
      heard: isOwn || isHeard(owner.owner),
    },
    ...defined({
      waits: progress?.waits,
      reason: reasonOf(view),
      attendance: update.attendance,
      rolledBackBy: rolledBackBy(view),
    }),
    createdAt: head.value.createdAt,
    updatedAt: timeOf(progress?.since) ?? head.value.updatedAt,
  };
}

/** By its policy, or because a node came out of its preparation with a disruption that no policy approves. */
function isAwaiting({ isApproved, spec }: RolloutInput, progress: Progress | undefined): boolean {
  return !isApproved && (spec.approvalPolicy === "manual" || progress?.waits?.includes("approval: ") === true);
}

function rolledBackBy(view: RolloutInput): string | undefined {
  const { rollback } = view.wishes;
  const progress = progressOf(view);
  return progress?.phase === "rolled_back" && progress.undone === rollback?.at ? rollback?.by : undefined;
}

/** What is rolled out, in words. */
export function titleOf({ spec, bundle }: Pick<UpdateRecords["statement"], "spec" | "bundle">): string {
  const { version, flakeRef, flakeRev } = spec.target;
  if (flakeRef !== undefined) return `${version ?? "NixOS"} (${flakeRef} at ${flakeRev?.slice(0, 12)})`;
  return bundle ? `kcore ${bundle.version}` : `kcore ${version ?? ""}`;
}

function rowOf({ rows, generation }: RolloutInput, id: string): NodeAssignment | undefined {
  const row = rows.get(id);
  return row?.generation === generation ? row : undefined;
}

function viewNode(
  update: UpdateRecords,
  view: RolloutInput,
  nodes: ReadonlyMap<string, KnownNode>,
  id: string,
  wave: number,
): NodeUpdateView {
  const node = nodes.get(id);
  const row = rowOf(view, id);
  const { phase, since } = row && !isLeftOut(view, id, row) ? row : unbegun(view);
  const { statement } = update;
  // What it said of a former generation is not how it stands in this one.
  const report = preparedOf(update, id);
  // A former owner's order waits until the present owner has adopted it.
  const isOwners = row?.epoch === view.owner.epoch && row.owner === view.owner.owner;
  const hook = isOwners ? lookAtHooks(view, id, row).next : undefined;
  return {
    id,
    hostname: node?.hostname ?? id,
    dc: node?.dc ?? "",
    roles: [...(node?.roles ?? [])],
    phase,
    wave,
    ready: node?.isReady ?? false,
    currentVersion: report?.present.version ?? node?.version ?? "",
    targetVersion: statement.bundle?.version ?? statement.spec.target.version ?? "",
    ...defined({
      currentGeneration: report?.present.generation ?? node?.runtime?.generation,
      targetGeneration: report?.targetGeneration,
      requiresReboot: report?.needsReboot,
      rebootReasons: report?.rebootReasons,
      failure: row?.failure,
      hook,
      seq: row?.seq,
    }),
    since: timeOf(since) ?? "",
  };
}

/** A node that the rollout has not come to, or that was removed before: it waits for its turn, unless that is over. */
function unbegun(view: RolloutInput): { readonly phase: NodeAssignment["phase"]; readonly since?: number } {
  const progress = progressOf(view);
  return progress && hasEnded(progress.phase) ? { phase: "cancelled", since: progress.since } : { phase: "pending" };
}

function timeOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
