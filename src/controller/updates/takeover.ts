import type { ReplyOf } from "#api/methods.ts";
import type { Records } from "../cluster/records.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import type { Timers } from "../replica/replica-ports.ts";
import { isGranted, mayGrant, nextEpoch, type Grant } from "#rollout/takeover.ts";
import type { UpdateIndex } from "./update-records.ts";

export interface TakeoverParts {
  readonly records: Records;
  readonly index: Pick<UpdateIndex, "all" | "read">;
  readonly controllerId: string;
  /** Registered controllers. */
  readonly members: () => readonly string[];
  readonly monotonic: () => number;
  readonly timers: Pick<Timers, "after">;
}

const patienceMs = 10_000;
const lookMs = 50;

/**
 * Makes this controller the owner, of a new epoch if it is that already: claims the next epoch, and waits for the grants of a majority.
 * Each controller grants an epoch once, durably (docs/adr/0515-cluster-updates.md). Forced, it waits for nobody. @throws Refused UPDATE_UNKNOWN, UPDATE_NO_MAJORITY
 */
export async function takeOver(
  { records, index, controllerId, members, monotonic, timers }: TakeoverParts,
  name: string,
  { force = false, by }: { readonly force?: boolean; readonly by: string },
): Promise<ReplyOf<"takeOverUpdate">> {
  const update = index.read(name);
  if (!update) throw unknownUpdate(name);
  const of = keys.update(name);
  const controllers = members().length;
  const grants = (): readonly Grant[] => [...wordsOf(records, "updateGrant", `${of.all}grant/`)];
  const epoch = nextEpoch(update.owner, [...grants(), ...wordsOf(records, "updateClaim", `${of.all}claim/`)]);
  const granted = { claimant: controllerId, epoch };
  const givers = (): string[] =>
    grants().flatMap((grant) => (grant.epoch === epoch && grant.claimant === controllerId ? [grant.controller] : []));
  const take = async () => {
    await records.write([{ key: of.owner, value: { epoch, owner: controllerId, by, forced: force } }]);
    return { epoch, owner: controllerId, grants: givers(), controllers };
  };
  await records.put([{ key: of.claim(epoch, controllerId), value: { owner: controllerId } }]);
  if (force) return take();
  const until = monotonic() + patienceMs;
  const hasAll = (): boolean => isGranted(grants(), new Set(members()), granted);
  while (!hasAll() && monotonic() < until) await new Promise<void>((resolve) => timers.after(lookMs, resolve));
  if (hasAll()) return take();
  throw new Refused(
    409,
    "UPDATE_NO_MAJORITY",
    `${givers().length} of ${controllers} controllers granted it, and it takes ${Math.floor(controllers / 2) + 1}`,
    `is the owner gone for good, and too many others with it? kcore update cluster takeover ${name} --force --old-owner-is-dead`,
  );
}

function* wordsOf(records: Records, kind: "updateClaim" | "updateGrant", prefix: string): Iterable<Grant> {
  for (const { key, value } of records.list(kind, prefix)) {
    const [epoch = "", controller = ""] = key.split("/").slice(-2);
    yield { epoch: Number(epoch), controller, claimant: value.owner };
  }
}

/**
 * This controller's own grants for all claims that wait for one: the first that it hears of, once an epoch. One call after the other: two
 * at once could each see that nothing was granted yet.
 */
export async function grantClaims({
  records,
  index,
  controllerId,
}: Pick<TakeoverParts, "records" | "index" | "controllerId">): Promise<void> {
  for (const { name, owner } of index.all()) {
    const of = keys.update(name);
    // All of them first: what is written here is not looked at meanwhile.
    const claims = [...wordsOf(records, "updateClaim", `${of.all}claim/`)];
    for (const { epoch, claimant } of claims) {
      const given = wordsOf(records, "updateGrant", `${of.all}grant/`);
      if (mayGrant(owner, given, controllerId, epoch))
        await records.write([{ key: of.grant(epoch, controllerId), value: { owner: claimant } }], "absent");
    }
  }
}

export function unknownUpdate(name: string): Refused {
  return new Refused(404, "UPDATE_UNKNOWN", `there is no update “${name.slice(0, 80)}”`, "kcore update cluster list");
}
