import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";

/**
 * Decides whether a failed update is rolled back; an operator may not want that if only a gate failed. Gives `goesBack`.
 * ```yaml
 * onFailure:
 *   - { id: verdict, run: update.verdict, gates: [web], onGateFailure: false }
 * ```
 */
export const updateVerdict = defineAction({
  name: "update.verdict",
  summary: "Says whether an update that failed is taken back.",
  outputs: ["goesBack"],
  args: z.strictObject({
    gates: z.array(z.string()).default([]).describe("Ids of the stages that are gates, as the file has them."),
    onGateFailure: z.boolean().default(true).describe("Whether the update is taken back also if only gates failed."),
  }),
  run({ gates, onGateFailure }, { ended, warn }) {
    const failed = [...ended].filter(([, { outcome }]) => outcome === "failed");
    const isGate = failed.every(
      ([, { stage = "", problem }]) =>
        gates.includes(stage.replace(/(?:-\d+)?(?:@\d+)?$/, "")) || problem?.code === "UPDATE_GATE_FAILED",
    );
    // No node can be reached to roll the update back.
    if (ended.size > 0 && [...ended.values()].every(({ outcome }) => outcome === "unreachable"))
      return Promise.resolve({ changed: false, outputs: { goesBack: false } });
    const goesBack = onGateFailure || failed.length === 0 || !isGate;
    warn(
      goesBack
        ? "the update failed: the changes of this run are taken back, in reverse order"
        : "a gate failed: the changes of this run stay (rollback.onHealthGateFailure)",
    );
    return Promise.resolve({ changed: false, outputs: { goesBack } });
  },
  plan: () => Promise.resolve({ changed: false, outputs: { goesBack: true } }),
});
