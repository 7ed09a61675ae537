import type { AnswerOf } from "#api/methods.ts";
import type { NodeUpdateView, UpdateSummary } from "#api/update-schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { hookStateOf, outcomeReason } from "#rollout/hooks.ts";
import { hasEnded, type RolloutProgress, type NodeAssignment } from "#rollout/records.ts";
import { divideIntoWaves } from "#rollout/selection.ts";
import { isLeftOut, type RolloutInput } from "#rollout/rollout-input.ts";
import type { OwnerLoopParts } from "./owner-loop.ts";
import { inputOf, presentHash, type KnownInput } from "./known-input.ts";
import { nextEpoch, presentReportOf, type UpdateRecords } from "./update-records.ts";

export interface ViewParts extends OwnerLoopParts {
  /** Whether another controller is connected. */
  readonly isHeard: (controller: string) => boolean;
  readonly endpointOf: (controller: string) => string | undefined;
}

/** One update for operators: its state, and that of each node. */
export function viewUpdate(parts: ViewParts, update: UpdateRecords): AnswerOf<"getUpdate"> {
  const input = inputOf(parts, update);
  const waves = presentWaves(input);
  const { statement, approved } = update;
  const nodeStatus = waves.flatMap((wave, index) => wave.map((id) => viewNode(update, input, id, index + 1)));
  return {
    ...summarize(parts, update, input),
    hash: presentHash(update, input.nodeIds),
    ...(input.isApproved && approved ? { approvedBy: approved.by } : {}),
    spec: statement.spec,
    ...omitUndefined({ bundle: statement.bundle }),
    signed: update.head.value.signed,
    takeover: { id: parts.controllerId, epoch: nextEpoch(update) },
    waves: waves.map((wave) => [...wave]),
    nodeStatus,
  };
}

export function summarizeUpdate(parts: ViewParts, update: UpdateRecords, nodes: KnownInput["nodes"]): UpdateSummary {
  return summarize(parts, update, inputOf(parts, update, nodes));
}

/** The waves with which the update began, or would begin now. */
function presentWaves(input: KnownInput): readonly (readonly string[])[] {
  const { nodeIds, nodes, spec, owner } = input;
  const progress = progressOf(input);
  if (progress && progress.waves.length > 0) return progress.waves;
  return divideIntoWaves(
    nodeIds.flatMap((id) => nodes.get(id) ?? []),
    spec,
    owner.owner,
  ).waves;
}

function progressOf({ progress, generation }: RolloutInput): RolloutProgress | undefined {
  return progress?.generation === generation ? progress : undefined;
}

function summarize(
  { isHeard, endpointOf, controllerId }: ViewParts,
  update: UpdateRecords,
  input: KnownInput,
): UpdateSummary {
  const { name, head, statement, owner } = update;
  const progress = progressOf(input);
  const phases = input.nodeIds.map((id) => rowOf(input, id)?.phase);
  const isOwn = owner.owner === controllerId;
  return {
    name,
    generation: head.value.generation,
    phase: progress?.phase ?? "pending",
    approvalStatus: approvalStatusOf(input),
    approvalPolicy: statement.spec.approvalPolicy,
    target: targetTitle(statement),
    strategy: statement.spec.strategy.type,
    nodes: phases.length,
    done: phases.filter((phase) => phase === "succeeded").length,
    failed: phases.filter((phase) => phase === "failed").length,
    owner: {
      id: owner.owner,
      epoch: owner.epoch,
      ...omitUndefined({ endpoint: endpointOf(owner.owner) }),
      heard: isOwn || isHeard(owner.owner),
    },
    ...omitUndefined({
      waits: progress?.waits,
      reason: outcomeReason(input),
      attendance: update.attendance,
      rolledBackBy: rolledBackBy(input),
    }),
    createdAt: head.value.createdAt,
    updatedAt: timeOf(progress?.since) ?? head.value.updatedAt,
  };
}

/** An update awaits approval by its policy, or because a node's preparation showed a reboot or a drain. */
export function approvalStatusOf(input: RolloutInput): UpdateSummary["approvalStatus"] {
  const isDisruptive = progressOf(input)?.waits?.includes("approval: ") === true;
  const isAwaiting = !input.isApproved && (input.spec.approvalPolicy === "manual" || isDisruptive);
  return isAwaiting ? "awaiting_approval" : "approved";
}

function rolledBackBy(input: RolloutInput): string | undefined {
  const { rollback } = input.requests;
  const progress = progressOf(input);
  return progress?.phase === "rolled_back" && progress.undone === rollback?.at ? rollback?.by : undefined;
}

/** The target as operators see it. */
export function targetTitle({ spec, bundle }: Pick<UpdateRecords["statement"], "spec" | "bundle">): string {
  const { version, flakeRef, flakeRev } = spec.target;
  if (flakeRef !== undefined) return `${version ?? "NixOS"} (${flakeRef} at ${flakeRev?.slice(0, 12)})`;
  return bundle ? `kcore ${bundle.version}` : `kcore ${version ?? ""}`;
}

function rowOf({ rows, generation }: RolloutInput, id: string): NodeAssignment | undefined {
  const row = rows.get(id);
  return row?.generation === generation ? row : undefined;
}

function viewNode(update: UpdateRecords, input: KnownInput, id: string, wave: number): NodeUpdateView {
  const node = input.nodes.get(id);
  const row = rowOf(input, id);
  const { phase, since } = row && !isLeftOut(input, id, row) ? row : phaseBeforeStart(input);
  const { statement } = update;
  // A report on a former generation does not count for this one.
  const report = presentReportOf(update, id);
  // A former owner's order shows no hook until the present owner has adopted it.
  const isOwnersRow = row?.epoch === input.owner.epoch && row.owner === input.owner.owner;
  const hook = isOwnersRow ? hookStateOf(input, id, row).next : undefined;
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
    ...omitUndefined({
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

/** The phase of a node that the rollout has not begun: `pending`, or `cancelled` once the rollout has ended. */
function phaseBeforeStart(input: RolloutInput): { readonly phase: NodeAssignment["phase"]; readonly since?: number } {
  const progress = progressOf(input);
  return progress && hasEnded(progress.phase) ? { phase: "cancelled", since: progress.since } : { phase: "pending" };
}

function timeOf(ms: number | undefined): string | undefined {
  return ms === undefined ? undefined : new Date(ms).toISOString();
}
