import { isKnown, mergeKindOf } from "#controller/cluster/registers.ts";
import { createReplica } from "#controller/replica/create-replica.ts";
import type { Replica } from "#controller/replica/replica.ts";

/** A founder's replica without a disk or a network. */
export function memoryReplica(wall: () => number, id = "c1"): Replica {
  return createReplica({
    id,
    cluster: "lab",
    clock: { wall, mono: wall },
    rng: () => 0.5,
    // Nothing in it waits for a timer to write.
    timers: { after: () => () => undefined, soon: (run) => queueMicrotask(run) },
    net: { dial: () => undefined },
    journal: { append: () => Promise.resolve() },
    recovered: [],
    start: "found",
    mergeKindOf,
    isKnown,
  });
}
