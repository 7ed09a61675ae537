import { z } from "zod";
import { type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";

/**
 * Lets an update begin if no node refused it, and fewer nodes than `maxUnavailable` cannot be reached.
 * ```yaml
 * - { id: begin, run: update.begin, with: { maxUnavailable: 1 } }
 * ```
 */
export const updateBegin = defineAction({
  name: "update.begin",
  summary: "Checks whether an update may begin, by the outcomes of its nodes so far.",
  outputs: [],
  args: z.strictObject({
    maxUnavailable: z.int().min(1).describe("So many of the nodes may be down at a time."),
  }),
  run: checkNodes,
  plan: checkNodes,
});

async function checkNodes(
  { maxUnavailable }: { readonly maxUnavailable: number },
  { ended, note }: ActionContext,
): Promise<ActionResult> {
  const failed = [...ended].filter(([, { outcome }]) => outcome === "failed");
  const away = [...ended].filter(([, { outcome }]) => outcome === "unreachable").map(([name]) => name);
  if (failed.length > 0)
    throw new KcoreError({
      code: "UPDATE_REFUSED",
      message: `no node is updated: ${failed.map(([name]) => name).join(", ")} ${failed.length === 1 ? "does" : "do"} not take part`,
      detail: failed.map(([name, { problem }]) => `${name}: ${problem?.message ?? "failed"}`).join("\n"),
      hint: "put that right, or leave them out by the manifest's selector",
    });
  if (away.length >= maxUnavailable)
    throw new KcoreError({
      code: "UPDATE_UNAVAILABLE",
      message: `no node is updated: ${away.join(", ")} cannot be reached, and with one more ${away.length + 1} would be down, where ${maxUnavailable} may be`,
      hint: "bring them back, leave them out by the manifest's selector, or raise strategy.maxUnavailable",
    });
  if (away.length > 0) note(`${away.join(", ")} cannot be reached: down, as far as is known`);
  return { changed: false, outputs: {} };
}
