import { bucketOf } from "#crdt/digest.ts";
import { compareRegisters } from "#crdt/merge-kind.ts";
import { isSameDot, type Register } from "#crdt/register.ts";
import { covers, type VersionVector } from "#crdt/version-vector.ts";
import type { Core } from "./core.ts";
import type { Peer } from "./peer.ts";
import { controllerOf } from "./registered-controllers.ts";

/** What a peer holds in some buckets of the digest. */
export interface Held {
  readonly registers: readonly Register[];
  readonly buckets: ReadonlySet<number>;
  readonly covered: VersionVector;
}

interface Settled {
  /** Those of the peer's that are merged, covered or not. */
  readonly taken: readonly Register[];
  /** Those of ours that go. */
  readonly gone: readonly Register[];
}

/**
 * Two hold different things under one version vector: somebody lied, or lost what it had. What a transaction was, its owner knows, as long
 * as the process lives that wrote under that origin: its word is taken, ours stands against anybody's, and nothing is taken of one that we can ask itself. Of
 * what nobody can be asked about, all is kept, and of two contents under one number the greater, so that all who exchange come to the same.
 */
export function settleRepair(core: Core, peer: Peer, { registers, buckets, covered }: Held): Settled {
  const { state, peers, options } = core;
  const { map } = state;
  const isToBeAsked = ({ o }: Register): boolean => {
    const owner = peers.get(controllerOf(o));
    return owner !== undefined && owner !== peer && owner.origins.has(o) && owner.stream?.isOpen === true;
  };
  const isTaken = (register: Register): boolean => {
    const { key, o, s } = register;
    if (!covers(map.vector, o, s)) return false;
    const present = map.get(key);
    const same = present && isSameDot(present, register) ? present : undefined;
    // Whoever says it: what is never deleted is not deleted by another content either.
    if (state.isLasting(register) || (same && state.isLasting(same))) return !same || isGreater(core, register, same);
    if (peer.origins.has(o)) return true;
    // What we wrote and does not stand has lost. If it wins, we never wrote it.
    if (o === state.origin || core.ownOrigins.has(o))
      return !same && present !== undefined && compareRegisters(options.mergeKindOf(key), present, register) > 0;
    return !isToBeAsked(register) && (!same || isGreater(core, register, same));
  };
  const taken = new Map(registers.filter(isTaken).map((register) => [register.key, register]));
  const sent = new Map(registers.map((register) => [register.key, register]));
  const isGone = (register: Register): boolean => {
    const { key, text, o, s } = register;
    if (!peer.origins.has(o) || text === null || !buckets.has(bucketOf(key)) || state.isLasting(register)) return false;
    const instead = sent.get(key);
    if (instead && (isSameDot(instead, register) || !taken.has(key))) return false;
    return covers(covered, o, s);
  };
  return { taken: [...taken.values()], gone: [...map.all()].filter(isGone) };
}

/** What its owner says of transactions that others handed on before, with other contents. */
export function contentsOf(core: Core, registers: readonly Register[]): readonly Register[] {
  return registers.filter((register) => {
    const present = core.state.map.get(register.key);
    return present && (!core.state.isLasting(present) || isGreater(core, register, present));
  });
}

/** Which of two contents that somebody gave to one number counts when nobody can say: the same one everywhere. */
function isGreater({ options }: Core, a: Register, b: Register): boolean {
  const order = compareRegisters(options.mergeKindOf(a.key), a, b);
  return order > 0 || (order === 0 && JSON.stringify(a.text) > JSON.stringify(b.text));
}
