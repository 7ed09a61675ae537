import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { defineAction } from "#engine/orchestrate/action.ts";

const YES = /^\s*(y|yes|true)\s*$/i;

/**
 * Asks the operator before the run goes on; `--yes` answers the question with yes. A dry run does not ask.
 * ```yaml
 * - { id: sure, run: confirm, message: "Remove {{params.node_name}} from the cluster?" }
 * ```
 */
export const confirmAction = defineAction({
  name: "confirm",
  summary: "Asks the operator whether to go on.",
  outputs: [],
  args: z.strictObject({
    message: z.string().min(1).describe("The question, answered by yes or no."),
  }),
  async run({ message }, { ask, node }) {
    const answer = await ask({ kind: "confirm", text: message, secret: false, ...(node && { node: node.name }) });
    if (YES.test(answer)) return { changed: false, outputs: {} };
    throw new KcoreError({
      code: "CONFIRM_DENIED",
      message: `answered no to “${message}”`,
      hint: "the run ends here; start the run again when you are ready",
    });
  },
  plan: ({ message }, { note }) => {
    note(`would ask: ${message}`);
    return Promise.resolve({ changed: false, outputs: {} });
  },
});
