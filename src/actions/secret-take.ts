import { z } from "zod";
import { defineAction } from "#engine/orchestrate/action.ts";
import { TextOrSecret } from "#engine/step/fields.ts";
import { Secret, secret } from "#engine/step/secret.ts";

const Args = z.strictObject({
  value: TextOrSecret.describe("The secret, as a node told it: the registered result of a sensitive step."),
});

/**
 * Gives stages of other nodes a secret of a node, such as a join token. From then on the run masks its text everywhere, and no file keeps it.
 * ```yaml
 * - { id: token, run: secret.take, value: "{{stages.told.server1.token.facts.token}}" }
 * ```
 */
export const secretTake = defineAction({
  name: "secret.take",
  outputs: ["secret"],
  summary: "Gives other nodes a secret that a node told, and keeps it nowhere.",
  args: Args,
  run: take,
  plan: take,
});

function take({ value }: z.output<typeof Args>): Promise<{ changed: false; outputs: { secret: Secret } }> {
  return Promise.resolve({ changed: false, outputs: { secret: value instanceof Secret ? value : secret(value) } });
}
