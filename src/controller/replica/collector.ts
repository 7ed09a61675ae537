import { collectable } from "#crdt/tombstones.ts";
import type { Core } from "./core.ts";

/** Forgets tombstones that every member has, now and then, and says when they pile up. */
export function startCollector(core: Core): void {
  core.every(core.tuning.collectEvery, () => {
    collect(core);
    watchTombstones(core);
  });
}

function collect(core: Core): void {
  const { state, others, peers } = core;
  // One that joins knows no members yet: to it, everything would look agreed (replication.md, 3.10).
  if (!state.ready || core.isResyncing) return;
  const acks = others.map((id) => peers.get(id)?.acked);
  state.collect(collectable(state.map.tombstones().values(), state.map.vector, acks));
}

function watchTombstones({ state, alarms, tuning, options }: Core): void {
  const tombstones = state.map.tombstones();
  const bound = options.clock.wall() - tuning.tombstoneAlarmAge;
  const isOld = [...tombstones.values()].some(({ ms }) => ms < bound);
  alarms.set(
    isOld || tombstones.size > tuning.tombstoneAlarm,
    "TOMBSTONES",
    "state",
    `${tombstones.size} deletions are kept for a controller that is away; kcore controller remove ID lets them go`,
  );
}
