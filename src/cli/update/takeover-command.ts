import { cleanLine } from "#engine/events/clean.ts";
import { KcoreError } from "#errors/problem.ts";
import { openCluster } from "../cluster/open-cluster.ts";
import { confirm } from "../terminal/confirm.ts";
import { formatResult, isForPeople } from "../terminal/format-result.ts";
import { canPrompt } from "../terminal/prompt.ts";
import { askUpdates } from "./ask-updates.ts";
import type { ChangeFlags } from "./change-commands.ts";
import { followOne } from "./follow-command.ts";
import { nameOf } from "./named-updates.ts";

export type TakeoverFlags = ChangeFlags & { readonly force?: boolean; readonly oldOwnerIsDead?: boolean };

/** What can happen when an update is taken over by force from an owner that lives after all. */
const dangers = `Nobody is asked: should the old owner live, cut off from here, both hold the update.
No node is driven by both: each keeps to the owner that it heard of with the highest epoch.
Not more nodes than maxUnavailable are down, for a node that has not confirmed the new owner counts as down.
They may block one another, until the next takeover: then nothing more is begun on either side.
The old owner begins no node any more once it has reached no majority of the controllers for 30 s.`;

/** A claim waits so long for the others' grants, and as long again for a slow line. */
const timeoutMs = 20_000;

/**
 * `kcore update cluster takeover`: the controller that is asked becomes the owner: the first that answers.
 * @throws KcoreError USAGE, CONFIRM_DENIED, UPDATE_NO_MAJORITY
 */
export async function takeOverUpdate(
  given: string | undefined,
  { filename, force = false, oldOwnerIsDead = false, watch = false, output, yes = false, ...flags }: TakeoverFlags,
): Promise<void> {
  const name = await nameOf(given, filename ? { filename } : {});
  if (force !== oldOwnerIsDead)
    throw new KcoreError({
      code: "USAGE",
      message: force
        ? "a takeover by force needs your word that the old owner is dead"
        : "--old-owner-is-dead means nothing without --force",
      detail: dangers,
      hint: `is it? kcore update cluster takeover ${name} --force --old-owner-is-dead`,
    });
  if (force && canPrompt()) {
    process.stderr.write(`${dangers}\n`);
    await confirm(`Is the old owner of ${name} dead?`, { yes });
  }
  const cluster = await openCluster(flags);
  const taken = await askUpdates(
    cluster,
    async (client) => ({
      before: (await client.call("getUpdate", {}, { id: name })).owner,
      ...(await client.call("takeOverUpdate", { force }, { id: name })),
      endpoint: (await client.call("getUpdate", {}, { id: name })).owner.endpoint,
    }),
    { timeoutMs, endpoints: cluster.endpoints },
  );
  const { before, ...result } = taken;
  const { owner, endpoint = owner, epoch, grants, controllers } = result;
  const how = force ? "by force" : `granted by ${grants.length} of ${controllers} controllers`;
  const again =
    before.id === owner ? `it was before; for another: kcore -s HOST update cluster takeover ${name}\n` : "";
  const waits = force
    ? `it begins no node until it reaches ${Math.floor(controllers / 2) + 1} of the ${controllers} controllers; of those that are gone for good: kcore controller remove ID\n`
    : "";
  const draw = (): string =>
    `${cleanLine(`${name} is owned by ${endpoint}: epoch ${epoch}, ${how}`)}\n${again}${waits}`;
  if (!watch || isForPeople(output)) process.stdout.write(formatResult({ name, ...result }, output, draw));
  if (watch) await followOne(name, { output, ...flags });
}
