// “A deletion stays deleted” (docs/replication.md): a deletion is forgotten only when every member has it and no older write is under way.
import { areInConflict } from "#crdt/conflict.ts";
import type { Register } from "#crdt/register.ts";
import { collectable } from "#crdt/tombstones.ts";
import { dominates, raise, type VersionVector } from "#crdt/version-vector.ts";
import type { Core } from "./replica-core.ts";
import { concernsMembers } from "./registered-controllers.ts";

/** Registers that every member acknowledged and no member needs, and the transactions that were being journaled at that time. */
interface Candidates {
  readonly registers: readonly Register[];
  readonly underway: VersionVector;
}

/**
 * Now and then forgets tombstones that every member has, and siblings that make no conflict; raises an alarm when
 * tombstones pile up.
 */
export function startTombstoneGc(core: Core): void {
  let former: Candidates | undefined;
  core.every(core.tuning.collectEvery, () => {
    const candidates = candidatesOf(core);
    // Under constant writes one is always under way; by the next round it has arrived.
    for (const { registers, underway } of [former, candidates].filter((each) => each !== undefined))
      if (dominates(core.state.map.vector, underway)) core.state.collect(registers);
    former = candidates;
    watchTombstones(core);
  });
}

/**
 * A write that is being journaled, here or at a member, has not seen a deletion that is acknowledged meanwhile. The
 * tombstone must stay until the write has arrived, or the write would undo the deletion.
 */
function candidatesOf(core: Core): Candidates | undefined {
  const { state, others, peers, options } = core;
  // A controller that joins knows no members yet: all would look acknowledged. A removed one keeps the deletion of its membership.
  if (!state.ready || state.isBehind || core.fullExchange || !core.members.includes(options.id)) return undefined;
  const acks = others.map((id) => peers.get(id)?.acked);
  const underway = new Map(core.accepted);
  for (const id of others) raise(underway, peers.get(id)?.soon ?? []);
  return { registers: collectable(needless(core), state.map.vector, acks), underway };
}

/** All tombstones except those of memberships, which stay on record, and those in a conflict. */
function deletions({ state }: Core): readonly Register[] {
  const { map } = state;
  return [...map.tombstones().values()].filter(({ key }) => !concernsMembers([key]) && !map.siblings.of(key).length);
}

/** A sibling with the value that stands makes no conflict, once no write without knowledge of it can come. */
function needless(core: Core): readonly Register[] {
  const { map } = core.state;
  const mute = [...map.siblings.all()].filter((lost) => {
    const standing = map.get(lost.key);
    return standing === undefined || !areInConflict(standing, lost) || map.siblings.isSettled(lost);
  });
  return [...deletions(core), ...mute];
}

function watchTombstones(core: Core): void {
  const { alarms, tuning, options } = core;
  const tombstones = deletions(core);
  const bound = options.clock.wall() - tuning.tombstoneAlarmAge;
  const isOld = tombstones.some(({ ms }) => ms < bound);
  alarms.set(
    isOld || tombstones.length > tuning.tombstoneAlarm,
    "TOMBSTONES",
    "state",
    `${tombstones.length} deletions are kept for a controller that is away; kcore controller remove ID lets them go`,
  );
}
