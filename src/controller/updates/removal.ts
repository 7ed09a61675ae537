import type { AnswerOf } from "#api/methods.ts";
import { isDrained } from "#rollout/hooks.ts";
import { workStates, type NodeAssignment } from "#rollout/records.ts";
import { isAtRest, isBack } from "#rollout/rollout-input.ts";
import { Refused } from "../cluster/refused.ts";
import { keys, registerKindOf } from "../cluster/registers.ts";
import { refuseUnlessOwner } from "./apply-update.ts";
import { inputOf, type InputSources } from "./known-input.ts";
import { isSettled, type UpdateRecords } from "./update-records.ts";
import type { ViewParts } from "./update-views.ts";

/** The number of newest updates that are kept, and the age above which even these are removed. */
export interface RetentionLimits {
  readonly updates: number;
  readonly ms: number;
}

const defaultRetention: RetentionLimits = { updates: 20, ms: 365 * 86_400_000 };

/** The most deletions in one transaction; a replica accepts 500 changes (replica/writer.ts). */
const atOnce = 400;

/** Removes a settled update at an operator's request. @throws Refused UPDATE_OWNED, UPDATE_BLOCKED, MATCH_FAILED */
export async function removeSettledUpdate(
  parts: ViewParts,
  update: UpdateRecords,
  by: string,
): Promise<AnswerOf<"removeUpdate">> {
  refuseUnlessOwner(parts, update, `remove ${update.name}`);
  const why = whyKept(parts, update);
  if (why !== undefined)
    throw new Refused(
      409,
      "UPDATE_BLOCKED",
      `“${update.name}” is not removed: ${why}`,
      `kcore update cluster get ${update.name}`,
    );
  return { result: "deleted", dot: await removeRegisters(parts, update, by) };
}

/**
 * Removes settled updates that are too many or too old, and the remaining registers of removed updates, of this controller and of former
 * ones. Removes nothing while another controller is out of reach: an operator may roll an update back there.
 */
export async function removeOld(
  parts: ViewParts & { readonly members: () => readonly string[] },
  kept = defaultRetention,
): Promise<void> {
  const { index, records, clock, audit, controllerId, log } = parts;
  const isMemberAway = parts.members().some((id) => id !== controllerId && !parts.isHeard(id));
  if (isMemberAway) return;
  for (const name of index.names()) {
    const removed = records.value("updateRemoved", keys.update(name).removed);
    if (removed && mayRemove(parts, removed.owner)) await deleteRest(parts, name);
  }
  const all = [...index.all()].toSorted((a, b) => changedAt(b) - changedAt(a));
  const old = all.filter((update, rank) => rank >= kept.updates || clock() - changedAt(update) > kept.ms);
  for (const { name } of old.toReversed()) {
    // Read anew: an operator may have requested a rollback of this update during an earlier removal.
    const update = index.read(name);
    if (!update || !mayRemove(parts, update.owner.owner) || whyKept(parts, update) !== undefined) continue;
    const by = `controller ${controllerId}`;
    await removeRegisters(parts, update, by);
    log.info("an old update was removed", { update: name });
    audit.record({ method: "removeUpdate", by, target: name, outcome: "deleted" });
  }
}

/** Whether an update's owner is this controller, or is no member any more: then any controller may remove the update. */
function mayRemove({ controllerId, controllers }: ViewParts, owner: string): boolean {
  return owner === controllerId || !controllers.isMember(owner);
}

function changedAt({ head, progress }: UpdateRecords): number {
  return progress?.value.since ?? Date.parse(head.value.updatedAt);
}

/** The reason why an update must stay: it is not settled, a node is at work or drained, or no later update names a node's version. */
function whyKept(parts: InputSources, update: UpdateRecords): string | undefined {
  const { head, progress, rows, reports } = update;
  const { generation } = head.value;
  const phase = progress?.value.generation === generation ? progress.value.phase : "pending";
  if (!isSettled(update)) return `it is not over (${phase})`;
  const input = inputOf(parts, update);
  const others = [...parts.index.all()].filter(({ name }) => name !== update.name);
  for (const [id, row] of rows) {
    const node = input.nodes.get(id);
    if (!node) continue;
    if (row.generation === generation && !isAtRest(row)) return `${node.hostname} is ${row.phase}`;
    const report = reports.get(id);
    if (isFollowed(others, id, row, report?.present.id === input.target.id)) continue;
    if (report && workStates.has(report.state)) return `${node.hostname} is ${report.state}`;
    if (isDrained(input, id, row)) return `${node.hostname} is drained`;
    if (!isBack(row)) return `no later update tells what ${node.hostname} runs`;
  }
  return undefined;
}

/**
 * Whether a later update succeeded on the node. If the node does not run this update's target, a later update that ended in the
 * same phase there counts, too.
 */
function isFollowed(others: readonly UpdateRecords[], id: string, row: NodeAssignment, isThere: boolean): boolean {
  return others.some(({ rows }) => {
    const later = rows.get(id);
    return later && later.since > row.since && (later.phase === "succeeded" || (!isThere && later.phase === row.phase));
  });
}

/** Removes an update, and returns the dot of its mark. The mark is written first: after a crash `removeOld` deletes the remaining registers. */
async function removeRegisters(parts: ViewParts, { name, head }: UpdateRecords, by: string): Promise<string> {
  const { records, clock, controllerId } = parts;
  const of = keys.update(name);
  const removed = { at: new Date(clock()).toISOString(), by, owner: controllerId };
  const dot = await records.write(
    [
      { key: of.removed, value: removed, isFree: true },
      { key: of.head, value: undefined },
    ],
    head.dot,
  );
  await deleteRest(parts, name);
  return dot;
}

/** Deletes all registers but the mark, by which the name is never used again, and registers of a newer version's kinds. */
async function deleteRest({ records }: ViewParts, name: string): Promise<void> {
  const rest = Array.from(records.replica.entries(keys.update(name).all), ([key]) => ({
    key,
    value: undefined,
  })).filter(({ key }) => key !== keys.update(name).removed && registerKindOf(key) !== undefined);
  for (let from = 0; from < rest.length; from += atOnce) await records.write(rest.slice(from, from + atOnce));
}
