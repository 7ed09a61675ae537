import { isDeepStrictEqual } from "node:util";
import type { AcceptedBodyOf, AnswerOf } from "#api/methods.ts";
import { answerable } from "#rollout/hooks.ts";
import { hookKey, nameOf } from "#rollout/rollout-input.ts";
import type { Records } from "../cluster/records.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import { viewOf, type OwnerLoopParts } from "./owner-loop.ts";
import { knowNodes } from "./rollout-nodes.ts";
import type { UpdateRecords } from "./update-records.ts";

interface Parts extends Omit<OwnerLoopParts, "audit" | "log"> {
  readonly records: Records;
}

/**
 * Notes what came of a hook of a node, by its id. It counts for the hook that it names alone: one that comes again, because its reply was
 * lost or somebody else attends, too, is taken as done and passes nothing else. @throws Refused UPDATE_NOT_ASKED
 */
export async function answerHook(
  parts: Parts,
  update: UpdateRecords,
  { node, hook, owner: whose, ...answer }: AcceptedBodyOf<"answerHook">,
): Promise<AnswerOf<"answerHook">> {
  const view = viewOf(update, knowNodes(parts), parts, parts.clock());
  const row = view.rows.get(node);
  // Another owner's order may have the same number; a bastion of before this was told says nothing of it.
  const isOfOwner = !whose || (whose.id === row?.owner && whose.epoch === row.epoch);
  const isForRow = row?.generation === answer.generation && row.seq === answer.seq && isOfOwner;
  const isAsked = isForRow && answerable(view, node, row) === hook;
  const known = update.answers.get(hookKey(node, hook));
  const { epoch, owner } =
    (isAsked ? row : ((whose && { epoch: whose.epoch, owner: whose.id }) ?? known)) ?? view.owner;
  const value = { ...answer, epoch, owner };
  if (!isAsked && !isDeepStrictEqual(known, value))
    throw new Refused(409, "UPDATE_NOT_ASKED", `“${hook}” is not asked of the bastion for ${nameOf(view, node)} now`);
  return parts.records.put([{ key: keys.update(update.name).hook(node, hook), value }]);
}
