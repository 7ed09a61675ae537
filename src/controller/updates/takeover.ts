import { setTimeout as sleep } from "node:timers/promises";
import type { ReplyOf } from "#api/methods.ts";
import type { Records } from "../cluster/records.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import type { Majority } from "./majority.ts";
import { readUpdate, updateNames } from "./update-records.ts";

export interface TakeoverParts {
  readonly records: Records;
  readonly controllerId: string;
  readonly majority: Majority;
  /** Registered controllers. */
  readonly members: () => readonly string[];
}

const patienceMs = 10_000;
const lookMs = 50;

/**
 * Makes this controller the owner: claims the next epoch, and waits for the grants of a majority. Each controller grants an epoch once,
 * durably (docs/adr/0515-cluster-updates.md). Forced, it waits for nobody. @throws Refused UPDATE_UNKNOWN, UPDATE_NO_MAJORITY
 */
export async function takeOver(
  { records, controllerId, majority, members }: TakeoverParts,
  name: string,
  { force = false, by }: { readonly force?: boolean; readonly by: string },
): Promise<ReplyOf<"takeOverUpdate">> {
  const update = readUpdate(records, name);
  if (!update) throw unknownUpdate(name);
  const of = keys.update(name);
  const { needed, of: controllers } = majority.needed();
  if (update.owner.owner === controllerId)
    return { epoch: update.owner.epoch, owner: controllerId, grants: [], controllers };
  const epoch = nextEpoch(records, name, update.owner.epoch, controllerId);
  const grants = (): readonly string[] =>
    members().filter((id) => records.value("updateGrant", of.grant(epoch, id))?.owner === controllerId);
  const take = async () => {
    await records.write([{ key: of.owner, value: { epoch, owner: controllerId, by, forced: force } }]);
    return { epoch, owner: controllerId, grants: [...grants()], controllers };
  };
  await records.put([{ key: of.claim(epoch, controllerId), value: { owner: controllerId } }]);
  await grantClaims({ records, controllerId });
  if (force) return take();
  const until = performance.now() + patienceMs;
  while (grants().length < needed && performance.now() < until) await sleep(lookMs);
  if (grants().length >= needed) return take();
  throw new Refused(
    409,
    "UPDATE_NO_MAJORITY",
    `${grants().length} of ${controllers} controllers granted it, and it takes ${needed}`,
    "is the owner gone for good, and too many others with it? kcore update cluster takeover NAME --force --old-owner-is-dead",
  );
}

/** The first epoch that nobody was granted, as far as is known here. */
function nextEpoch({ replica }: Records, name: string, present: number, self: string): number {
  let epoch = present + 1;
  const of = keys.update(name);
  const isTaken = (): boolean =>
    [...replica.entries(`${of.all}grant/${epoch}/`)].some(
      ([, { text }]) => (JSON.parse(text ?? "{}") as { owner?: string }).owner !== self,
    );
  while (isTaken()) epoch++;
  return epoch;
}

/** This controller's own grants for all claims that wait for one: the first that it hears of, once an epoch. */
export async function grantClaims({
  records,
  controllerId,
}: Pick<TakeoverParts, "records" | "controllerId">): Promise<void> {
  for (const name of updateNames(records)) {
    const of = keys.update(name);
    const present = records.value("updateOwner", of.owner)?.epoch ?? 0;
    for (const { key, value } of records.list("updateClaim", `${of.all}claim/`)) {
      const epoch = Number(key.split("/")[3]);
      const grant = of.grant(epoch, controllerId);
      if (epoch > present && !records.replica.stands(grant))
        await records.write([{ key: grant, value: { owner: value.owner } }], "absent").catch(unlessGranted);
    }
  }
}

/** Two looks at one claim, the one for the other's write: it was granted meanwhile. */
function unlessGranted(error: unknown): void {
  if (!(error instanceof Refused && error.code === "MATCH_FAILED")) throw error;
}

export function unknownUpdate(name: string): Refused {
  return new Refused(404, "UPDATE_UNKNOWN", `there is no update “${name.slice(0, 80)}”`, "kcore update cluster list");
}
