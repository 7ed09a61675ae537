import { Ownership, type SignedStatement } from "#rollout/spec.ts";
import type { z } from "zod";
import { Refused } from "../cluster/refused.ts";

/** The content of a statement that this cluster's bastion signed, as of `now`, ms since 1970. @throws KcoreError UPDATE_UNSIGNED */
export type Verify = (signed: SignedStatement, now: number) => unknown;

export interface SignedParts {
  readonly verify: Verify;
  readonly clock: () => number;
}

/** The bastion's clock may be this far ahead of a controller's. */
const mostAheadMs = 300_000;

/** Reads a statement about an update as an operator hands it over. @throws Refused API_INVALID, UPDATE_UNSIGNED, KcoreError UPDATE_UNSIGNED */
export function readSigned<Said extends { readonly name: string; readonly signedAt: string }>(
  { verify, clock }: SignedParts,
  {
    name,
    signed,
    schema,
  }: { readonly name: string; readonly signed: SignedStatement; readonly schema: z.ZodType<Said> },
): Said {
  const { success, data, error } = schema.safeParse(verify(signed, clock()));
  if (!success) {
    const [issue] = error.issues;
    throw new Refused(400, "API_INVALID", `the statement: ${issue?.path.join(".")}: ${issue?.message}`);
  }
  if (data.name !== name)
    throw new Refused(400, "API_INVALID", `the statement is of “${data.name}”, not of “${name.slice(0, 80)}”`);
  const { signedAt } = data;
  // A node takes nothing older than its last statement: one of a clock that runs ahead would keep every other update from it until then.
  if (Date.parse(signedAt) - clock() > mostAheadMs)
    throw new Refused(
      400,
      "UPDATE_UNSIGNED",
      `it was signed at ${signedAt}, and here it is ${new Date(clock()).toISOString()}`,
      "set the bastion's clock right, or this controller's, and apply it again",
    );
  return data;
}

/** The owner of an update, as the bastion signed it. @throws Refused, KcoreError UPDATE_UNSIGNED */
export function readOwnership(parts: SignedParts, name: string, signed: SignedStatement) {
  const { owner, epoch } = readSigned(parts, { name, signed, schema: Ownership });
  return { epoch, owner, signed };
}
