// “A deletion stays deleted” (docs/replication.md): a deletion is forgotten only when every member has it and no older write is under way.
import { areInConflict } from "#crdt/conflict.ts";
import type { Register } from "#crdt/register.ts";
import { collectable } from "#crdt/tombstones.ts";
import { dominates, raise, type VersionVector } from "#crdt/version-vector.ts";
import type { Core } from "./replica-core.ts";
import { concernsMembers } from "./registered-controllers.ts";

/** Registers that every member acknowledged, and the transactions that were being journaled at that time. */
interface Candidates {
  readonly registers: readonly Register[];
  readonly underway: VersionVector;
}

/**
 * At intervals forgets tombstones that every member has, and siblings without a conflict; raises an alarm when tombstones
 * pile up.
 */
export function startTombstoneGc(core: Core): void {
  let former: Candidates | undefined;
  core.every(core.tuning.collectEvery, () => {
    const candidates = candidatesOf(core);
    // The candidates of the last round, too: under constant writes some write is always under way, but by the next round it has arrived.
    for (const { registers, underway } of [former, candidates].filter((each) => each !== undefined))
      if (dominates(core.state.map.vector, underway)) core.state.collect(registers);
    former = candidates;
    watchTombstones(core);
  });
}

/**
 * The candidates now. A write that is being journaled, here or at a member, has not seen a deletion that is acknowledged
 * meanwhile. The tombstone must stay until the write has arrived, or the write would undo the deletion.
 */
function candidatesOf(core: Core): Candidates | undefined {
  const { state, others, peers, options } = core;
  // Without a complete list of members every tombstone would look acknowledged: a joining controller knows no member yet, and a removed
  // controller is no member.
  if (!state.ready || state.isBehind || core.fullExchange || !core.members.includes(options.id)) return undefined;
  const acks = others.map((id) => peers.get(id)?.acked);
  const underway = new Map(core.commits.accepted);
  for (const id of others) raise(underway, peers.get(id)?.underway ?? []);
  const forgettable = [...forgettableTombstones(core), ...forgettableSiblings(core)];
  return { registers: collectable(forgettable, state.map.vector, acks), underway };
}

/** All tombstones except of memberships, which stay on record, and of keys with a sibling, which would become the value again. */
function forgettableTombstones({ state }: Core): readonly Register[] {
  const { map } = state;
  return [...map.tombstones().values()].filter(({ key }) => !concernsMembers([key]) && !map.siblings.of(key).length);
}

/** The siblings that are settled, or in no conflict with the winner. */
function forgettableSiblings({ state }: Core): readonly Register[] {
  const { map } = state;
  return [...map.siblings.all()].filter((lost) => {
    const standing = map.get(lost.key);
    return standing === undefined || !areInConflict(standing, lost) || map.siblings.isSettled(lost);
  });
}

function watchTombstones(core: Core): void {
  const { alarms, tuning, options } = core;
  const tombstones = forgettableTombstones(core);
  const bound = options.clock.wall() - tuning.tombstoneAlarmAge;
  const isOld = tombstones.some(({ ms }) => ms < bound);
  alarms.set(
    isOld || tombstones.length > tuning.tombstoneAlarm,
    "TOMBSTONES",
    "state",
    `${tombstones.length} deletions are kept for a controller that is away; kcore controller remove ID lets them go`,
  );
}
