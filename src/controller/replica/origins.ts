import { MalformedPage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { covers } from "#crdt/version-vector.ts";
import { authKeyOf, controllerOf } from "./registered-controllers.ts";
import type { ReplicaState } from "./replica-state.ts";

/** So many origins of controllers that are not on record may be in a version vector: former members of older clusters. */
const maxForeign = 256;
/** So many incarnations of one controller; it takes a new one when its store was put back, or a member could not be asked. */
const maxIncarnations = 4096;

/** How many origins each controller has; those of controllers that are not on record are counted under "". */
function countByOwner(
  origins: Iterable<string>,
  isForeign: (origin: string) => boolean,
): { readonly counts: ReadonlyMap<string, number>; readonly ownerOf: (origin: string) => string } {
  const ownerOf = (origin: string): string => (isForeign(origin) ? "" : controllerOf(origin));
  const counts = new Map<string, number>();
  for (const origin of new Set(origins)) counts.set(ownerOf(origin), (counts.get(ownerOf(origin)) ?? 0) + 1);
  return { counts, ownerOf };
}

const limitOf = (owner: string): number => (owner === "" ? maxForeign : maxIncarnations);

/**
 * Lets go of origins with which an earlier version let itself be flooded: of an owner with more than anybody may have, those that wrote
 * nothing that is here. Called when the state has been recovered; what was real of them is asked for again. Gives their number.
 */
export function healVector({ map, floor, origin: own }: ReplicaState): number {
  const isForeign = (origin: string): boolean => map.get(authKeyOf(controllerOf(origin))) === undefined;
  const { counts, ownerOf } = countByOwner([...map.vector.keys(), ...floor.keys()], isForeign);
  if ([...counts].every(([owner, count]) => count <= limitOf(owner))) return 0;
  const present = new Set([own]);
  for (const { o } of map.all()) present.add(o);
  const gone = [...map.vector.keys(), ...floor.keys()].filter(
    (origin) => (counts.get(ownerOf(origin)) ?? 0) > limitOf(ownerOf(origin)) && !present.has(origin),
  );
  for (const origin of gone) {
    map.forget(origin);
    floor.delete(origin);
  }
  return new Set(gone).size;
}

/**
 * Whoever wrote something is registered, or was (the deletion of a member is never forgotten). One that joins knows nobody yet and
 * takes what its sponsor has.
 * @throws MalformedPage when news come from anybody else, or would fill the version vector
 */
export function checkOrigins(
  { map, ready }: ReplicaState,
  upto: Iterable<readonly [origin: string, seq: number]>,
  registers: readonly Register[],
): void {
  // Many registers have few origins.
  const foreign = new Map<string, boolean>();
  const isForeign = (origin: string): boolean => {
    let is = foreign.get(origin);
    if (is === undefined) {
      const key = authKeyOf(controllerOf(origin));
      is = map.get(key) === undefined && !registers.some((register) => register.key === key);
      foreign.set(origin, is);
    }
    return is;
  };
  if (ready)
    for (const { o, s } of registers)
      if (!covers(map.vector, o, s) && isForeign(o))
        throw new MalformedPage(`a transaction of ${o}, which nobody registered`);
  const fresh = [...upto].filter(([origin]) => !map.vector.has(origin));
  if (fresh.length === 0) return;
  const { counts } = countByOwner([...map.vector.keys(), ...fresh.map(([name]) => name)], isForeign);
  for (const [owner, count] of counts)
    if (count > limitOf(owner))
      throw new MalformedPage(`${count} origins of ${owner || "controllers that nobody registered"}`);
}
