import { OwnershipStatement, type SignedStatement } from "#rollout/spec.ts";
import type { z } from "zod";
import { Refused } from "../cluster/refused.ts";

/** Verifies that this cluster's bastion signed a statement, as of `now` (ms since 1970), and returns its content. @throws KcoreError UPDATE_UNSIGNED */
export type Verify = (signed: SignedStatement, now: number) => unknown;

export interface SignedParts {
  readonly verify: Verify;
  readonly clock: () => number;
}

/** The maximum difference in ms by which the bastion's clock may be ahead of a controller's. */
const mostAheadMs = 300_000;

/** Verifies and parses a statement about the update `name` in a request. @throws Refused API_INVALID, UPDATE_UNSIGNED, KcoreError UPDATE_UNSIGNED */
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
  // A node refuses statements older than its last one: a statement dated ahead would block every other update on it until that time.
  if (Date.parse(signedAt) - clock() > mostAheadMs)
    throw new Refused(
      400,
      "UPDATE_UNSIGNED",
      `the statement was signed at ${signedAt}, and this controller's clock says ${new Date(clock()).toISOString()}`,
      "set the bastion's clock right, or this controller's, and apply the update again",
    );
  return data;
}

/** Verifies and parses the bastion's statement about an update's owner. @throws Refused, KcoreError UPDATE_UNSIGNED */
export function readOwnership(parts: SignedParts, name: string, signed: SignedStatement) {
  const { owner, epoch } = readSigned(parts, { name, signed, schema: OwnershipStatement });
  return { epoch, owner, signed };
}
