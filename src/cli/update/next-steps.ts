import type { UpdateSummary } from "#api/update-schemas.ts";
import { hasEnded } from "#rollout/records.ts";
import { attendantOf } from "#rollout/hooks.ts";
import type { UpdateSpec } from "#rollout/spec.ts";
import { hooksOf } from "./hooks.ts";

/** The operator's next steps with an applied update: approve it, attend to the hooks of its spec, or apply it again after its end. */
export function nextSteps({
  name,
  phase,
  approvalStatus,
  spec,
  attendance,
}: Pick<UpdateSummary, "name" | "phase" | "approvalStatus" | "attendance"> & {
  readonly spec?: UpdateSpec | undefined;
}): readonly string[] {
  if (phase === "succeeded") return [];
  if (hasEnded(phase))
    return [`it is ${phase}, and stays so; to try it again: kcore update cluster apply -f FILE --again`];
  const hooks = spec ? [...hooksOf(spec).keys()] : [];
  return [
    ...(approvalStatus === "awaiting_approval" ? [`next: kcore update cluster approve ${name}`] : []),
    ...(hooks.length > 0
      ? [
          `it waits for the bastion (${hooks.join(", ")})${attendance ? `, attended by ${attendantOf(attendance)}` : `: kcore update cluster attend ${name}`}`,
        ]
      : []),
  ];
}
