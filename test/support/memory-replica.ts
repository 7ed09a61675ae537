import { keyRules } from "#controller/cluster/registers.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import { createReplica } from "#controller/replica/create-replica.ts";
import type { Replica } from "#controller/replica/replica.ts";

/** A founder's replica without a disk or a network, or one of a state that was recovered from a disk. */
export function memoryReplica(wall: () => number, id = "c1", data = new ClusterState(keyRules)): Replica {
  return createReplica({
    id,
    cluster: "lab",
    clock: { wall, mono: wall },
    rng: () => 0.5,
    // Nothing in it waits for a timer to write.
    timers: { after: () => () => undefined, soon: (run) => queueMicrotask(run) },
    net: { dial: () => undefined },
    db: { data, append: () => Promise.resolve() },
    start: "found",
  });
}
