import { z } from "zod";
import { defineAction, type ActionContext, type ActionResult } from "#engine/orchestrate/action.ts";
import { KcoreError } from "#errors/problem.ts";
import { nodeOf } from "./cluster-context.ts";

const Args = z.strictObject({
  hooks: z
    .array(z.looseObject({ for: z.string().describe("The change of work that the hook serves") }))
    .describe("The project's hooks, run.hooks"),
  wanted: z.array(z.string()).describe("Hooks without which a step of the way is left out; a missing one is a warning"),
  required: z.array(z.string()).default([]).describe("Hooks without which the node is refused"),
});
type Args = z.output<typeof Args>;

/** Names the hooks of a node's work that kcore.yaml lacks: a removal without them passes over work and data in silence. */
export const nodeHooks = defineAction({
  name: "node.hooks",
  summary: "Warns of hooks that kcore.yaml lacks under drain, and refuses a node without a required one.",
  outputs: ["checked"],
  args: Args,
  run: (args, context) => Promise.resolve().then(() => check(args, context)),
  plan: (args, context) => Promise.resolve().then(() => check(args, context)),
});

function check({ hooks, wanted, required }: Args, context: ActionContext): ActionResult {
  const { name } = nodeOf("node.hooks", undefined, context);
  const isMissing = (hook: string): boolean => hooks.every((one) => one.for !== hook);
  const lost = required.filter(isMissing);
  if (lost.length > 0)
    throw new KcoreError({
      code: "HOOK_MISSING",
      message: `kcore.yaml has no hook ${lost.join(", ")} under drain, so nothing proves that the data of ${name} is elsewhere`,
      hint: "write the hook into kcore.yaml; if the data may be lost: --set without_storage_hook=true",
    });
  const missing = wanted.filter(isMissing);
  if (missing.length > 0)
    context.warn(`kcore.yaml has no hook ${missing.join(", ")} under drain: ${name} goes on without it`);
  return { changed: false, outputs: { checked: true } };
}
