import type { UpdateSummary } from "#api/update-schemas.ts";
import { hasEnded } from "#rollout/records.ts";

/** What an operator does next with an update that was applied: approves it, or applies it again where it has come to its end. */
export function nextSteps({
  name,
  phase,
  approvalStatus,
}: Pick<UpdateSummary, "name" | "phase" | "approvalStatus">): readonly string[] {
  if (phase === "succeeded") return [];
  if (hasEnded(phase))
    return [`it is ${phase}, and stays so; to try it again: kcore update cluster apply -f FILE --again`];
  return approvalStatus === "awaiting_approval" ? [`next: kcore update cluster approve ${name}`] : [];
}
