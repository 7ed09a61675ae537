import { isDeepStrictEqual } from "node:util";
import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { answerable } from "#rollout/hooks.ts";
import { hasEnded, type RequestAction } from "#rollout/records.ts";
import { hookKey, hostnameIn } from "#rollout/rollout-input.ts";
import { isUnbegun } from "#rollout/schedule.ts";
import type { Records } from "../cluster/records.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import { inputOf, type InputSources } from "./known-input.ts";
import { readOwnership, type SignedParts } from "./signed-statements.ts";
import type { UpdateRecords } from "./update-records.ts";

const requestable: Readonly<Record<RequestAction, readonly string[]>> = {
  cancel: ["pending", "ready", "rolling_out"],
  rollback: ["pending", "ready", "rolling_out", "succeeded", "failed", "cancelled", "rolling_back"],
  promote: ["rolling_out"],
};

/** Records an operator's request, which the owner carries out. @throws Refused UPDATE_ENDED if there is nothing to do */
export async function noteRequest(
  parts: InputSources,
  update: UpdateRecords,
  action: RequestAction,
  request: { readonly by: string; readonly at: string; readonly now?: boolean },
): Promise<AnswerOf<"cancelUpdate">> {
  const { name, head, progress } = update;
  const { generation } = head.value;
  const present = progress?.value;
  const phase = present?.generation === generation ? present.phase : "pending";
  if (!requestable[action].includes(phase))
    throw new Refused(
      409,
      "UPDATE_ENDED",
      `“${name}” is ${phase}: there is nothing to ${action === "rollback" ? "roll back" : action}`,
    );
  if (action === "rollback" && present && hasEnded(phase) && isUnbegun(inputOf(parts, update), present))
    throw new Refused(
      409,
      "UPDATE_ENDED",
      `“${name}” is ${phase}, and no node was begun: there is nothing to roll back`,
      `kcore update cluster get ${name}`,
    );
  if (action === "promote" && (present?.canaries ?? 0) === 0)
    throw new Refused(409, "UPDATE_ENDED", `“${name}” has no canary to promote`, "strategy: { type: canary }");
  return parts.records.put([{ key: keys.update(name).request(action), value: { generation, ...request } }]);
}

/**
 * Records the outcome of a node's hook. An answer counts only for the order that it names. A repeated answer, after a lost reply or by a
 * second attending process, succeeds without effect. @throws Refused UPDATE_NOT_ASKED
 */
export async function answerHook(
  parts: InputSources,
  update: UpdateRecords,
  { node, hook, owner: orderOwner, ...answer }: AcceptedBodyOf<"answerHook">,
): Promise<AnswerOf<"answerHook">> {
  const input = inputOf(parts, update);
  const row = input.rows.get(node);
  // Another owner's order may have the same `seq`; an older bastion does not name the owner.
  const isOfOwner = !orderOwner || (orderOwner.id === row?.owner && orderOwner.epoch === row.epoch);
  const isForRow = row?.generation === answer.generation && row.seq === answer.seq && isOfOwner;
  const isAsked = isForRow && answerable(input, node, row) === hook;
  const known = update.answers.get(hookKey(node, hook));
  const { epoch, owner } =
    (isAsked ? row : ((orderOwner && { epoch: orderOwner.epoch, owner: orderOwner.id }) ?? known)) ?? input.owner;
  const value = { ...answer, epoch, owner };
  if (!isAsked && !isDeepStrictEqual(known, value))
    throw new Refused(
      409,
      "UPDATE_NOT_ASKED",
      `“${hook}” is not asked of the bastion for ${hostnameIn(input, node)} now`,
    );
  return parts.records.put([{ key: keys.update(update.name).hook(node, hook), value }]);
}

/** Records that an operator's process begins to run the hooks of an update, or has ended. The record holds the process that began last. */
export async function attendUpdate(
  { records, clock }: Pick<InputSources, "records" | "clock">,
  { name, attendance }: UpdateRecords,
  { host, ended = false }: AcceptedBodyOf<"attendUpdate">,
  by: string,
): Promise<AnswerOf<"attendUpdate">> {
  const key = keys.update(name).attendance;
  if (!ended) return records.put([{ key, value: { by, host, at: new Date(clock()).toISOString() } }]);
  const isShown = attendance?.by === by && attendance.host === host;
  return records.put([{ key, value: isShown ? undefined : attendance }]);
}

/**
 * Writes the owner that the bastion signed; any controller may. Nodes refuse the owners of earlier epochs, and a second owner of
 * this epoch (docs/adr/0515-cluster-updates.md). @throws Refused UPDATE_OWNED, API_INVALID, UPDATE_UNSIGNED; KcoreError UPDATE_UNSIGNED
 */
export async function takeOver(
  parts: SignedParts & { readonly records: Records },
  { name, owner: present }: UpdateRecords,
  { ownership }: AcceptedBodyOf<"takeOverUpdate">,
  by: string,
): Promise<AnswerOf<"takeOverUpdate">> {
  const { signed, ...next } = readOwnership(parts, name, ownership);
  const isRepeated = next.epoch === present.epoch && next.owner === present.owner;
  if (next.epoch <= present.epoch && !isRepeated)
    throw new Refused(
      409,
      "UPDATE_OWNED",
      `“${name}” is owned by the controller ${present.owner} in epoch ${present.epoch}, and epoch ${next.epoch} was signed`,
      `kcore update cluster takeover ${name} signs the next epoch`,
    );
  if (!isRepeated) await parts.records.write([{ key: keys.update(name).owner, value: { ...next, signed, by } }]);
  return next;
}
