// “Members only” (docs/replication.md): a pull or push is refused when it holds transactions of a controller that was never registered.
import { MalformedPage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { covers } from "#crdt/version-vector.ts";
import { authKeyOf, controllerOf } from "./registered-controllers.ts";
import type { ClusterState } from "./cluster-state.ts";

/** The most origins in a version vector whose controllers have no membership on record. */
const maxForeign = 256;
/** The most origins of one controller; it takes a new one when its store was restored, or a member could not be asked. */
const maxGenerations = 4096;

/**
 * Checks that each writer is or was a registered controller (the deletion of a membership is never forgotten). A joining controller knows
 * no member yet, and takes the origins of its sponsor's state unchecked.
 * @throws MalformedPage when new transactions have another origin, or there are too many origins
 */
export function checkOrigins(
  { map, ready }: ClusterState,
  upto: Iterable<readonly [origin: string, seq: number]>,
  registers: readonly Register[],
): void {
  // Many registers share few origins: each is looked up once.
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
        throw new MalformedPage(`a transaction of ${o}, which is of no registered controller`);
  const fresh = [...upto].filter(([origin]) => !map.vector.has(origin));
  if (fresh.length === 0) return;
  const counts = new Map<string, number>();
  for (const origin of new Set([...map.vector.keys(), ...fresh.map(([name]) => name)])) {
    const owner = isForeign(origin) ? "" : controllerOf(origin);
    counts.set(owner, (counts.get(owner) ?? 0) + 1);
  }
  for (const [owner, count] of counts)
    if (count > (owner === "" ? maxForeign : maxGenerations))
      throw new MalformedPage(`${count} origins of ${owner || "controllers that are not registered"}`);
}
