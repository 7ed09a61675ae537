// “Watched” (docs/replication.md): the state of this controller and of each peer, as operators see it.
import { raiseClockAlarms, stampWaitOf } from "./clock-alarms.ts";
import type { Core } from "./replica-core.ts";
import type { Peer } from "./peer.ts";
import { healthAt } from "./phi.ts";
import type { PeerStatus, ReplicaStatus, WriteRefusal } from "./replica.ts";

/** The state of a replica now; raises and clears the clock's alarms first. */
export function replicaStatusOf(
  core: Core,
  readOnly: WriteRefusal | undefined,
  quarantined: Iterable<string>,
): ReplicaStatus {
  const { state, options, others, peers, alarms } = core;
  raiseClockAlarms(core);
  const known = new Set([...others, ...[...peers.values()].flatMap(({ id, stream }) => (stream ? [id] : []))]);
  return {
    id: options.id,
    origin: core.generation.origin,
    ready: state.ready && !state.isBehind,
    catchingUp: state.isBehind || core.isAsking,
    readOnly,
    readOnlyFor: readOnly === "CLOCK_SKEW" ? stampWaitOf(core) : undefined,
    vv: Object.fromEntries(state.map.vector),
    digest: state.map.digest.total(),
    peers: [...known].toSorted().map((id) => peerStatusOf(core, core.peerOf(id))),
    registers: state.map.size,
    tombstones: state.map.tombstones().size,
    deferred: Object.fromEntries(core.futureStamps.origins),
    quarantined: [...quarantined],
    alarms: alarms.all(),
  };
}

function peerStatusOf({ options, state, guard, refusals }: Core, peer: Peer): PeerStatus {
  const now = options.clock.mono();
  const { vector } = state.map;
  const acked = peer.acked ?? new Map<string, number>();
  const phi = peer.phi.phi(now);
  const refusal = refusals.lastOf(peer.id);
  return {
    id: peer.id,
    state: peer.stream?.isOpen ? "connected" : refusal ? "refused" : peer.isDialling ? "connecting" : "disconnected",
    health: healthAt(phi),
    phi,
    rttMs: peer.rtt.rtt,
    offsetMs: guard.offsetOf(peer.id),
    behind: lag(vector, acked),
    ahead: lag(acked, vector),
    ready: peer.isReady,
    ...(refusal ? { refusal } : {}),
  };
}

/** The number of transactions in `full` that `part` lacks. */
function lag(full: ReadonlyMap<string, number>, part: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const [origin, seq] of full) sum += Math.max(0, seq - (part.get(origin) ?? 0));
  return sum;
}
