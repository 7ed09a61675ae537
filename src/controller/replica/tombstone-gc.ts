// Promise of docs/replication.md: A deletion stays deleted.
import { areInConflict } from "#crdt/conflict.ts";
import type { Register } from "#crdt/register.ts";
import { collectable } from "#crdt/tombstones.ts";
import { dominates, raise, type VersionVector } from "#crdt/version-vector.ts";
import type { Core } from "./core.ts";
import { concernsMembers } from "./registered-controllers.ts";

/** What every member acknowledged and nobody needs, and what was being journaled anywhere as they did. */
interface Candidates {
  readonly registers: readonly Register[];
  readonly underway: VersionVector;
}

/** Forgets tombstones that every member has, and siblings that make no conflict, now and then; says when tombstones pile up. */
export function startTombstoneGc(core: Core): void {
  let former: Candidates | undefined;
  core.every(core.tuning.collectEvery, () => {
    const candidates = candidatesOf(core);
    // While writes never cease there is always one under way; by the next time it has arrived.
    for (const { registers, underway } of [former, candidates].filter((each) => each !== undefined))
      if (dominates(core.state.map.vector, underway)) core.state.collect(registers);
    former = candidates;
    watchTombstones(core);
  });
}

/**
 * A write that is being journaled, here or at a member, was made without having seen what is acknowledged meanwhile. A tombstone that
 * wins over it must stay until it has arrived, or it would undo the deletion.
 */
function candidatesOf(core: Core): Candidates | undefined {
  const { state, others, peers, options } = core;
  // One that joins knows no members yet: to it, everything would look agreed. One that is out keeps
  // the deletion that says so.
  if (!state.ready || state.isBehind || core.fullExchange || !core.members.includes(options.id)) return undefined;
  const acks = others.map((id) => peers.get(id)?.acked);
  const underway = new Map(core.accepted);
  for (const id of others) raise(underway, peers.get(id)?.soon ?? []);
  return { registers: collectable(needless(core), state.map.vector, acks), underway };
}

/** All but those of members, since who wrote here once has to stay on record, and those that stand in a conflict. */
function deletions({ state }: Core): readonly Register[] {
  const { map } = state;
  return [...map.tombstones().values()].filter(({ key }) => !concernsMembers([key]) && !map.siblings.of(key).length);
}

/** A sibling that says what stands anyway would make a conflict only with a write that does not know of it. */
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
