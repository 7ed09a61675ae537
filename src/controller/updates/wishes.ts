import type { AnswerOf } from "#api/methods.ts";
import { hasEnded, type WishAction } from "#rollout/records.ts";
import { isUnbegun } from "#rollout/schedule.ts";
import { Refused } from "../cluster/refused.ts";
import { keys } from "../cluster/registers.ts";
import { viewOf, type OwnerLoopParts } from "./owner-loop.ts";
import { knowNodes } from "./rollout-nodes.ts";
import type { UpdateRecords } from "./update-records.ts";

const wishable: Readonly<Record<WishAction, readonly string[]>> = {
  cancel: ["pending", "ready", "rolling_out"],
  rollback: ["pending", "ready", "rolling_out", "succeeded", "failed", "cancelled", "rolling_back"],
  promote: ["rolling_out"],
};

/** Notes what an operator asks of a rollout; its owner carries it out. @throws Refused UPDATE_ENDED where there is nothing to do */
export async function wishFor(
  parts: OwnerLoopParts,
  update: UpdateRecords,
  action: WishAction,
  wish: { readonly by: string; readonly at: string; readonly now?: boolean },
): Promise<AnswerOf<"cancelUpdate">> {
  const { name, head, progress } = update;
  const { generation } = head.value;
  const present = progress?.value;
  const phase = present?.generation === generation ? present.phase : "pending";
  if (!wishable[action].includes(phase))
    throw new Refused(
      409,
      "UPDATE_ENDED",
      `“${name}” is ${phase}: there is nothing to ${action === "rollback" ? "roll back" : action}`,
    );
  if (
    action === "rollback" &&
    present &&
    hasEnded(phase) &&
    isUnbegun(viewOf(update, knowNodes(parts), parts, parts.clock()), present)
  )
    throw new Refused(
      409,
      "UPDATE_ENDED",
      `“${name}” is ${phase}, and no node was begun: there is nothing to roll back`,
      `kcore update cluster get ${name}`,
    );
  if (action === "promote" && (present?.canaries ?? 0) === 0)
    throw new Refused(409, "UPDATE_ENDED", `“${name}” has no canary to promote`, "strategy: { type: canary }");
  return parts.records.put([{ key: keys.update(name).wish(action), value: { generation, ...wish } }]);
}
