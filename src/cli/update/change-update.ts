import type { UpdateSummary, UpdateView } from "#api/update-schemas.ts";
import { cleanLine } from "#engine/events/clean.ts";
import { exitCodes, KcoreError, type Problem } from "#errors/problem.ts";
import { hasEnded } from "#rollout/records.ts";
import { openCluster, type Cluster } from "../cluster/open-cluster.ts";
import { type Listing, showListing } from "../get/show-listing.ts";
import type { ClusterFlags, ResultFormat } from "../options.ts";
import { requireYes } from "../terminal/ask-operator.ts";
import { formatResult, isForPeople } from "../terminal/format-result.ts";
import { canPrompt } from "../terminal/prompt.ts";
import { toStderr } from "../terminal/say.ts";
import { getUpdate, updateNameOf, type NameFlags, askUpdates, callForUpdate } from "./ask-updates.ts";
import { drawPlanBriefly, shortHash } from "./draw-plan.ts";
import { drawUpdate, updateColumns, ownerOf } from "./draw-update.ts";
import { followOne } from "./follow-update.ts";
import { openSigner, planOfPresent } from "./submit-update.ts";

export type GetUpdateFlags = ClusterFlags &
  NameFlags & { readonly watch?: boolean; readonly output: ResultFormat; readonly passphraseFile?: string };

const updateListing: Listing<UpdateSummary> = {
  // The newest first.
  fetch: async (client) =>
    (await client.call("listUpdates", {})).updates.toSorted((a, b) => (a.createdAt < b.createdAt ? 1 : -1)),
  key: ({ name }) => name,
  columns: updateColumns,
  none: "no updates yet: kcore update cluster apply -f FILE",
  registers: ["update/"],
};

/** `kcore update cluster list`. */
export async function listUpdates({ output, watch = false, ...flags }: GetUpdateFlags): Promise<void> {
  await showListing(await openCluster(flags), updateListing, { output, watch });
}

/** `kcore update cluster get`. @throws KcoreError UPDATE_UNKNOWN */
export async function showUpdate(
  given: string | undefined,
  { filename, output, watch = false, ...flags }: GetUpdateFlags,
): Promise<void> {
  const name = await updateNameOf(given, { filename });
  if (watch) return followOne(name, { output, ...flags });
  // The signed statement would repeat the spec.
  const { signed: _, ...view } = await getUpdate(await openCluster(flags), name);
  process.stdout.write(formatResult(view, output, (wide) => drawUpdate(view, { wide, now: Date.now() })));
}

/** Flags of the commands that change a rollout. */
export type ChangeFlags = GetUpdateFlags & { readonly yes?: boolean };

/** The result of a change. */
interface ChangeResult {
  /** The result as data. */
  readonly result: string;
  /** The result in words, behind the update's name. */
  readonly text: string;
  /** The phase in which `-w` ends with success. */
  readonly wanted?: UpdateView["phase"];
}

/** Changes an update, prints the result, and with `-w` follows the rollout. With `-w`, JSON and YAML have only transitions. */
async function change(
  given: string | undefined,
  { filename, watch = false, ...flags }: ChangeFlags,
  work: (cluster: Cluster, view: UpdateView) => Promise<ChangeResult>,
): Promise<void> {
  const name = await updateNameOf(given, { filename });
  const cluster = await openCluster(flags);
  const view = await getUpdate(cluster, name);
  const { generation, hash, owner, updatedAt } = view;
  const { result, text, wanted } = await work(cluster, view);
  if (!owner.heard)
    toStderr(
      `the owner ${ownerOf({ owner })} is not heard of: the update waits until the owner is back, or: kcore update cluster takeover ${name}`,
    );
  const draw = (): string => `${cleanLine(`${name} ${text}`)}\n`;
  if (!watch || isForPeople(flags.output))
    process.stdout.write(formatResult({ name, result, generation, hash }, flags.output, draw));
  if (watch) await followOne(name, flags, { generation, endedAt: updatedAt, ...(wanted && { wanted }) });
}

/** `kcore update cluster approve`. @throws KcoreError UPDATE_PLAN_CHANGED, UPDATE_ENDED, CONFIRM_DENIED */
export async function approveUpdate(
  given: string | undefined,
  { hash: wanted, ...flags }: ChangeFlags & { readonly hash?: string },
): Promise<void> {
  await change(given, flags, async (cluster, view) => {
    const { name, generation, hash, phase, approvedBy } = view;
    // A short prefix could fit another hash by chance.
    if (wanted !== undefined && !(wanted.length >= 8 && hash.startsWith(wanted.toLowerCase())))
      throw failedRefusal({
        code: "UPDATE_PLAN_CHANGED",
        message: `“${name}” has the hash ${shortHash(hash)} (generation ${generation}), not ${wanted}`,
        hint: `look again: kcore update cluster plan ${name}`,
      });
    if (hasEnded(phase))
      throw failedRefusal({ code: "UPDATE_ENDED", message: `“${name}” is ${phase}: there is nothing to approve` });
    if (approvedBy !== undefined) return { result: "unchanged", text: `is approved already, by ${approvedBy}` };
    if (canPrompt() && flags.yes !== true) {
      toStderr(drawPlanBriefly(await planOfPresent(cluster, name), { would: "approved" }));
      await requireYes(`Approve ${name}, generation ${generation}?`, {});
    }
    await askUpdates(cluster, (client) => client.call("approveUpdate", { generation, hash }, { id: name }));
    return { result: "approved", text: `approved: generation ${generation}, hash ${shortHash(hash)}` };
  });
}

function failedRefusal(problem: Problem): KcoreError {
  return new KcoreError(problem, { exitCode: exitCodes.failed });
}

/** `kcore update cluster cancel`. @throws KcoreError UPDATE_ENDED */
export async function cancelUpdate(given: string | undefined, flags: ChangeFlags): Promise<void> {
  await change(given, flags, async (cluster, { name }) => {
    await askUpdates(cluster, (client) => client.call("cancelUpdate", {}, { id: name }));
    const text = "is being cancelled: no node is begun any more, and what is activated is not interrupted";
    return { result: "cancelling", text, wanted: "cancelled" };
  });
}

/** `kcore update cluster rollback`. @throws KcoreError UPDATE_ENDED, CONFIRM_DENIED */
export async function rollBackUpdate(
  given: string | undefined,
  { now = false, ...flags }: ChangeFlags & { readonly now?: boolean },
): Promise<void> {
  await change(given, flags, async (cluster, { name, done, nodes }) => {
    const all = now ? ", and all that must go back do it at once" : "";
    if (canPrompt())
      await requireYes(`Take ${name} back? ${done} of ${nodes} nodes are done${all}`, { yes: flags.yes === true });
    await askUpdates(cluster, (client) => client.call("rollbackUpdate", { now }, { id: name }));
    return { result: "rolling_back", text: "is being taken back, the last node first", wanted: "rolled_back" };
  });
}

/** `kcore update cluster promote`. @throws KcoreError UPDATE_ENDED */
export async function promoteUpdate(given: string | undefined, flags: ChangeFlags): Promise<void> {
  await change(given, flags, async (cluster, { name }) => {
    await askUpdates(cluster, (client) => client.call("promoteUpdate", {}, { id: name }));
    return { result: "promoted", text: "is promoted: the rest follows the canaries when they are done" };
  });
}

/** `kcore update cluster remove`. @throws KcoreError UPDATE_BLOCKED, UPDATE_OWNED, CONFIRM_DENIED */
export async function removeUpdate(given: string | undefined, flags: ChangeFlags): Promise<void> {
  await change(given, flags, async (cluster, { name, owner }) => {
    const question = `Remove ${name}? It cannot be rolled back then, and its name is never used again`;
    if (canPrompt()) await requireYes(question, { yes: flags.yes === true });
    // Only the owner removes an update. If the owner is not heard of, another controller is asked: its refusal names the remedy.
    const endpoints = owner.heard && owner.endpoint !== undefined ? { endpoints: [owner.endpoint] } : {};
    await askUpdates(cluster, (client) => client.call("removeUpdate", {}, { id: name }), endpoints);
    return { result: "removed", text: "is removed; its nodes stay as they are" };
  });
}

/**
 * `kcore update cluster takeover`: the bastion signs the next epoch for the first controller that answers.
 * @throws KcoreError UPDATE_UNKNOWN, UPDATE_OWNED, CLOCK_DIFFERS, QUESTION_UNANSWERED, PKI_PASSPHRASE_WRONG
 */
export async function takeOverUpdate(
  given: string | undefined,
  { filename, watch = false, output, ...flags }: ChangeFlags,
): Promise<void> {
  const name = await updateNameOf(given, { filename });
  const cluster = await openCluster(flags);
  const { owner: before, takeover } = await getUpdate(cluster, name);
  const signer = await openSigner(cluster, flags.passphraseFile);
  const ownership = signer.owner(name, takeover);
  const { endpoint, ...result } = await askUpdates(cluster, async (client) => ({
    ...(await client.call("takeOverUpdate", { ownership }, { id: name })),
    endpoint: (await callForUpdate(client, name)).owner.endpoint,
  }));
  const { owner, epoch } = result;
  const again =
    before.id === owner ? `it was before; for another: kcore -s HOST update cluster takeover ${name}\n` : "";
  const draw = (): string => `${cleanLine(`${name} is owned by ${endpoint ?? owner}: epoch ${epoch}`)}\n${again}`;
  if (!watch || isForPeople(output)) process.stdout.write(formatResult({ name, ...result }, output, draw));
  if (watch) await followOne(name, { output, ...flags });
}
