// “Durable” (docs/replication.md): the parts of a replica change its state by `commits` alone.
import type { Alarms } from "./alarms.ts";
import type { CommitQueue } from "./commit-queue.ts";
import type { Peer } from "./peer.ts";
import type { Clock, ReplicaLog } from "./replica-ports.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { Tuning } from "./tuning.ts";

/** The part of the core (replica-core.ts) that its components use. */
export interface ReplicaContext {
  readonly options: { readonly id: string; readonly clock: Clock; readonly log?: ReplicaLog };
  readonly tuning: Tuning;
  readonly state: ClusterState;
  readonly alarms: Alarms;
  /** The other members, as far as this controller knows. */
  readonly others: readonly string[];
  readonly peers: ReadonlyMap<string, Peer>;
  readonly commits: CommitQueue;
  readonly randomName: () => string;
  /** A timer that stops with the replica; the result cancels it. */
  readonly after: (ms: number, run: () => void) => () => void;
}
