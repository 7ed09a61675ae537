import { MalformedPage } from "#crdt/page.ts";
import { dominates, type VersionVector } from "#crdt/version-vector.ts";
import type { Core } from "./core.ts";
import type { Peer } from "./peer.ts";

/**
 * A full exchange lets go of what the peer does not send. It is offered to who has not seen what the peer has forgotten; the peer had
 * seen that itself.
 * @throws MalformedPage
 */
export function checkOffer(floor: VersionVector, upto: VersionVector, told: VersionVector): void {
  if (!dominates(upto, floor)) throw new MalformedPage("that it forgot what it never had");
  if (dominates(told, floor)) throw new MalformedPage("a full exchange that nothing calls for");
}

/**
 * Whether the full exchange that this peer offers is to be taken. Nobody forgets a deletion before every member said that it has it, so
 * the only one that is rightly offered one is new, or was put back to an earlier state. Who knows that of itself takes it. Who does not
 * needs the word of two: one may lie. Where it was put back, the others offer the same, or have the deletion still and send it.
 */
export function isDue({ state, others, peers }: Core, { id }: Peer): boolean {
  if (!state.ready || state.isBehind) return true;
  const rest = others.filter((other) => other !== id);
  return rest.length === 0 || rest.some((other) => peers.get(other)?.offersMoreThan(state.map.vector));
}

/** Offers that somebody else's deltas have made needless are past, and those of who is a member no more. */
export function settleOffers({ state, peers, alarms, others }: Core): void {
  for (const peer of peers.values()) {
    if (!peer.offer || (others.includes(peer.id) && peer.offersMoreThan(state.map.vector))) continue;
    peer.offer = undefined;
    alarms.clear("PUT_BACK", peer.id);
  }
}

/** Somebody offers a full exchange, and nobody else: the others are asked, and people are told. */
export function askForAnother(core: Core, { id }: Peer): void {
  core.alarms.raise(
    "PUT_BACK",
    id,
    `${id} says that this controller was put back to an earlier state, and no other one says so: nothing of ${id} is taken meanwhile. ` +
      `Either ${id} lies, or this one was put back: then stop it, kcore controller repair, start it`,
  );
  for (const { id: other, stream } of core.peers.values()) if (other !== id && stream?.isOpen) stream.pull();
}
