import { mayBringTarget } from "./eligibility.ts";
import { isDrained } from "./hooks.ts";
import type { NodeAssignment, RolloutProgress } from "./records.ts";
import { isAtRest, isBack, type Decision, type RolloutInput, type RolloutNode } from "./rollout-input.ts";

/**
 * Makes the former owner's records the new owner's, as far as this controller has them. The former owner may act for a while, so each
 * unfinished node first has to report its state (preflight), and no order changes a node. Undefined if all records are this owner's.
 */
export function resumeAfterTakeover(input: RolloutInput, progress: RolloutProgress): Decision | undefined {
  const { epoch, owner } = input.owner;
  const rows = new Map<string, NodeAssignment>();
  for (const id of new Set([...progress.waves.flat(), ...input.rows.keys()])) {
    const row = input.rows.get(id);
    const isSelected = row?.generation === input.generation || progress.waves.some((wave) => wave.includes(id));
    if (isSelected && !isOwn(input, id, row)) rows.set(id, resumedRow(input, id, row));
  }
  if (rows.size === 0 && progress.epoch === epoch && progress.owner === owner) return undefined;
  return { progress: { ...progress, epoch, owner, waves: withStrays(progress.waves, rows.keys()) }, rows };
}

/** Appends each node that is in no wave as a wave of its own. */
export function withStrays(waves: readonly (readonly string[])[], ids: Iterable<string>): string[][] {
  const strays = [...ids].filter((id) => !waves.some((wave) => wave.includes(id)));
  return [...waves.map((wave) => [...wave]), ...strays.map((id) => [id])];
}

/**
 * Whether this owner wrote the row, and the node knows no later order of this owner: another owner of the same epoch
 * may have overwritten the later row.
 */
function isOwn(input: RolloutInput, id: string, row: NodeAssignment | undefined): boolean {
  const { epoch, owner } = input.owner;
  return (
    row?.generation === input.generation &&
    row.epoch === epoch &&
    row.owner === owner &&
    row.seq >= lastSeqOf(input, id)
  );
}

function resumedRow(input: RolloutInput, id: string, row: NodeAssignment | undefined): NodeAssignment {
  if (row?.generation !== input.generation) return firstRow(input, id, "preflight");
  const { epoch, owner } = input.owner;
  const seq = Math.max(row.seq, lastSeqOf(input, id)) + 1;
  if (isAtRest(row)) return { ...row, epoch, owner, seq };
  const drained = row.phase === "draining" ? { drained: true } : {};
  return { ...row, epoch, owner, seq, phase: "preflight", since: input.now, ...drained };
}

/** A node's first row of a generation. Its `seq` is above that of every known order of this owner; an unfinished undrain stays due. */
export function firstRow(input: RolloutInput, id: string, phase: "pending" | "preflight"): NodeAssignment {
  const { owner, rows, generation, now } = input;
  const before = rows.get(id);
  return {
    epoch: owner.epoch,
    owner: owner.owner,
    generation,
    seq: Math.max(before?.seq ?? 0, lastSeqOf(input, id)) + 1,
    phase,
    since: now,
    ...(mayBeDrained(input, id, before) ? { drained: true } : {}),
    ...(isUnproven(input, id, before) ? { unproven: true } : {}),
  };
}

/** Whether the node was drained, or a former owner may have drained it without a record here. */
function mayBeDrained(input: RolloutInput, id: string, before: NodeAssignment | undefined): boolean {
  const { epoch, owner } = input.owner;
  if (before && isDrained(input, id, before)) return true;
  const isOwnRow = before?.epoch === epoch && before.owner === owner;
  return input.spec.drain.enabled && epoch > 1 && input.generation > 1 && !isOwnRow;
}

/** Whether an earlier generation, or a former owner without a record here, may have left the node with an unproven target. */
function isUnproven({ owner, reports }: RolloutInput, id: string, before: NodeAssignment | undefined): boolean {
  if (before) return before.phase !== "succeeded";
  return owner.epoch > 1 && reports.get(id)?.previous !== undefined;
}

/** The number of this owner's last order that the node accepted; 0 if none. */
function lastSeqOf({ name, owner, reports }: RolloutInput, id: string): number {
  const fence = reports.get(id)?.fence;
  const isOfPresentOwner = fence?.name === name && fence.epoch === owner.epoch && fence.owner === owner.owner;
  return isOfPresentOwner ? fence.seq : 0;
}

/**
 * The nodes that may have the target by an earlier generation of the update, and can go back from it. Their last reports to any owner
 * count.
 */
export function nodesOfEarlierGenerations(input: RolloutInput): readonly RolloutNode[] {
  return [...input.nodes.values()].filter(({ id }) => {
    const [row, report] = [input.rows.get(id), input.reports.get(id)];
    if (row?.generation === input.generation) return false;
    if (report?.present.id === input.target.id) return report.previous !== undefined;
    if (!row || row.untouched === true) return false;
    return report ? mayBringTarget(row, report) : row.phase !== "pending" && !isBack(row);
  });
}
