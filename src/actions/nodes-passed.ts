import { z } from "zod";
import { type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";

/**
 * Ends the run if one of its nodes has failed or could not be reached: the stages behind it begin only if all is well.
 * ```yaml
 * - { id: allPass, run: nodes.passed }
 * ```
 */
export const nodesPassed = defineAction({
  name: "nodes.passed",
  summary: "Ends the run if one of its nodes has failed or could not be reached.",
  outputs: [],
  args: z.strictObject({}),
  run: judgeNodes,
  plan: judgeNodes,
});

async function judgeNodes(_: object, { ended }: ActionContext): Promise<ActionResult> {
  const bad = [...ended].filter(([, { outcome }]) => outcome === "failed" || outcome === "unreachable");
  if (bad.length === 0) return { changed: false, outputs: {} };
  throw new KcoreError({
    code: "NODES_FAILED",
    message: `nothing further begins: ${bad.map(([name, { outcome }]) => `${name} ${outcome === "failed" ? "failed" : "is unreachable"}`).join(", ")}`,
    detail: bad.map(([name, { problem }]) => `${name}: ${problem?.message ?? "failed"}`).join("\n"),
    hint: "mend these nodes, or leave them out by the target",
  });
}
