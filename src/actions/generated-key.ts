import { z } from "zod";
import type { ActionContext } from "#engine/orchestrate/action.ts";
import type { NodeEntry } from "#engine/roster/roster.ts";

/** The facts that a step `key.generated` registered. */
export const GeneratedKey = z.object({
  facts: z
    .object({
      spki: z.string().optional().describe("The public key, base64 of its SubjectPublicKeyInfo"),
      proof: z.string().optional().describe("The challenge signed by the key, base64"),
      certificate: z.string().optional().describe("The certificate that lies beside the key, base64 of PEM"),
    })
    .prefault({})
    .describe("The facts of key.generated"),
});

/** The argument `challenge` of actions that issue certificates. */
export const Challenge = z
  .string()
  .min(1)
  .optional()
  .describe(
    "The text that the keys signed; unless given: kcore proof of possession CHALLENGE NODE-ID, with run.challenge",
  );

/** The challenge for a node's keys, random for each run and bound to the node: no proof of an earlier run or of another node fits (S-14). */
export function challengeFor({ id }: NodeEntry, { challenge }: Pick<ActionContext, "challenge">): string {
  return `kcore proof of possession ${challenge} ${id}`;
}
