import { keyRules } from "#controller/cluster/registers.ts";
import { ClusterState } from "#controller/replica/cluster-state.ts";
import { createReplica, type Replica } from "#controller/replica/create-replica.ts";

/** A founder's replica without a disk or a network, optionally with recovered state. */
export function memoryReplica(wall: () => number, id = "c1", data = new ClusterState(keyRules)): Replica {
  return createReplica({
    id,
    cluster: "lab",
    clock: { wall, mono: wall },
    rng: () => 0.5,
    // The replica writes without waiting for a timer.
    timers: { after: () => () => undefined, soon: (run) => queueMicrotask(run) },
    net: { dial: () => undefined },
    db: { data, append: () => Promise.resolve() },
    start: "found",
  });
}
