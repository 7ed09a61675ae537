import type { UpdateSummary } from "#api/update-schemas.ts";
import { hasEnded } from "#rollout/records.ts";

/** What an operator does next with an update that was applied: approves it, or names it anew where it has come to its end. */
export function nextSteps({
  name,
  phase,
  approvalStatus,
}: Pick<UpdateSummary, "name" | "phase" | "approvalStatus">): readonly string[] {
  if (phase === "succeeded") return [];
  if (hasEnded(phase))
    return [`it is ${phase}, and stays so; to try it again: give it another metadata.name, or change what it says`];
  return approvalStatus === "awaiting_approval" ? [`next: kcore update cluster approve ${name}`] : [];
}
