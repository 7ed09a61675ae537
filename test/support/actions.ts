import { z } from "zod";
import { type Action, type ActionContext, type ActionResult, defineAction } from "#engine/orchestrate/action.ts";

const refuse = (): Promise<never> => Promise.reject(new Error("the test expects no call of this action"));

/** An action that must not be called: it rejects. */
export const noAction: Action = defineAction({
  name: "test.none",
  summary: "Refuses.",
  args: z.strictObject({}),
  run: refuse,
  plan: refuse,
});

/** An action of the test's own; its plan is unknown by default. */
export function testAction(
  name: string,
  run: (context: ActionContext, args: unknown) => Promise<ActionResult> | ActionResult,
  plan: (context: ActionContext, args: unknown) => ActionResult | "unknown" = () => "unknown",
  args: z.ZodType = z.looseObject({}),
): Action {
  return defineAction({
    name,
    summary: "As the test says.",
    args,
    run: async (given, context) => run(context, given),
    plan: async (given, context) => plan(context, given),
  });
}
