import { isContested, isKnown, isSecret, mergeKindOf } from "#controller/cluster/registers.ts";
import { createReplica } from "#controller/replica/create-replica.ts";
import type { JournalRecord } from "#controller/replica/replica-ports.ts";
import type { Replica } from "#controller/replica/replica.ts";

/** A founder's replica without a disk or a network, or one with what was recovered from a disk. */
export function memoryReplica(wall: () => number, id = "c1", recovered: Iterable<JournalRecord> = []): Replica {
  return createReplica({
    id,
    cluster: "lab",
    clock: { wall, mono: wall },
    rng: () => 0.5,
    // Nothing in it waits for a timer to write.
    timers: { after: () => () => undefined, soon: (run) => queueMicrotask(run) },
    net: { dial: () => undefined },
    journal: { append: () => Promise.resolve() },
    recovered,
    start: "found",
    mergeKindOf,
    isContested,
    isKnown,
    isSecret,
  });
}
